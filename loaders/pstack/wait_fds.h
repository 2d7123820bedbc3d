/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: which descriptors a thread waits for that waits for many: those of an epoll by its fdinfo,
 * those of poll(2) and select(2) by what their arguments point to in its memory. Which of them are
 * sockets, and of whom, the caller knows (snapshot.h).
 */
#ifndef SONDE_PSTACK_WAIT_FDS_H
#define SONDE_PSTACK_WAIT_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/pstack.h"

#define WAIT_FDS_MAX 65536 /* of one thread; what is past that is not looked at */

struct wait_fd {
	uint32_t fd;
	uint64_t ino; /* of what the epoll watches by that number; 0: not known */
};

struct wait_fds {
	struct wait_fd *rows;
	size_t n, cap;
};

/* Does it sleep in such a system call? */
bool wait_fds_is_one(const struct pstack_record *r);
/* Those descriptors; none where they cannot be read. Release in any case. */
void wait_fds_read(const struct pstack_record *r, struct wait_fds *out);
void wait_fds_release(struct wait_fds *w);

/* The parts, pure: a line of an epoll's fdinfo (false: it is of no descriptor), an array of struct
 * pollfd, a select's set of `n` descriptors. */
bool wait_fds_epoll_line(const char *line, struct wait_fd *out);
void wait_fds_poll(const void *array, size_t bytes, struct wait_fds *out);
void wait_fds_set(const void *set, size_t bytes, uint32_t n, struct wait_fds *out);

#endif
