/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: which descriptors a thread waits for that waits for many: those of an epoll by its fdinfo, those of poll(2) and select(2) by what their arguments
 * point to in its memory. Which of them are sockets, and of whom, the caller knows (snapshot.h).
 */
#ifndef SONDE_PSTACK_WATCH_H
#define SONDE_PSTACK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/pstack.h"

#define WATCH_FDS 65536 /* of one thread; what is past that is not looked at */

struct watch_fd {
	uint32_t fd;
	uint64_t ino;  /* of what the epoll watches by that number; 0: not known */
};

struct watch_fds {
	struct watch_fd *rows;
	size_t n, cap;
};

/* Does it sleep in such a system call? */
bool watch_is_one(const struct pstack_record *r);
/* Those descriptors; none where they cannot be read. Release in any case. */
void watch_read(const struct pstack_record *r, struct watch_fds *out);
void watch_release(struct watch_fds *w);

/* The parts, pure: a line of an epoll's fdinfo (false: it is of no descriptor), an array of struct pollfd, a select's set of `n` descriptors. */
bool watch_epoll_line(const char *line, struct watch_fd *out);
void watch_poll(const void *array, size_t bytes, struct watch_fds *out);
void watch_set(const void *set, size_t bytes, uint32_t n, struct watch_fds *out);

#endif
