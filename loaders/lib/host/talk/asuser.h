/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asuser: a process that becomes the user of another one, to talk to it: a runtime trusts only its
 * own user, and files that are made or removed for it are then that user's business. Only in a
 * process that was forked for this: there is no way back.
 *
 * asuser_open needs the rights to look into the process; asuser_become those to become its user
 * (CAP_SETUID, CAP_SETGID), unless it is this user already. All return 0 or -errno.
 */
#ifndef SONDE_HOST_ASUSER_H
#define SONDE_HOST_ASUSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct asuser {
	uint32_t pid, nspid; /* its number here, and in its own pid namespace */
	uid_t uid;
	gid_t gid; /* effective: what its peers compare */
	int pidfd;
};

/* -ESRCH: the process with this number and start has ended. */
int asuser_open(struct asuser *u, uint32_t pid, uint64_t start_ticks);
bool asuser_is_gone(const struct asuser *u);
/* A folder of the process, "/tmp", as an O_PATH descriptor. A link in it leads to a place below the
 * process's root, never to one of ours. */
int asuser_folder(const struct asuser *u, const char *path);
/* Its user and group, no other groups, no capability. */
int asuser_become(const struct asuser *u);

#endif
