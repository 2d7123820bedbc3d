/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup: ownership visible in one function. Locals marked with these release themselves on every
 * way out; take_ptr / take_fd pass ownership on. Descriptors start at -1 and are
 * O_CLOEXEC.
 */
#ifndef SONDE_BASE_CLEANUP_H
#define SONDE_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fd_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_file_(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_dir_(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define cleanup_free __attribute__((cleanup(cleanup_free_)))
#define cleanup_fd   __attribute__((cleanup(cleanup_fd_)))
#define cleanup_file __attribute__((cleanup(cleanup_file_)))
#define cleanup_dir  __attribute__((cleanup(cleanup_dir_)))

#define take_ptr(p)                        \
	({                                 \
		__typeof__(p) took_ = (p); \
		(p) = NULL;                \
		took_;                     \
	})

static inline int take_fd(int *fd)
{
	int took = *fd;

	*fd = -1;
	return took;
}

#endif
