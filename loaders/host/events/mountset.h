/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mountset: which file systems are mounted where, to find what was mounted and unmounted between
 * two looks. What is mounted and unmounted again within that time is not seen. Pure.
 *
 * A look: mountset_begin, mountset_see for each mount, mountset_end.
 */
#ifndef SONDE_HOST_MOUNTSET_H
#define SONDE_HOST_MOUNTSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOUNTSET_MAX 512 /* more are not followed */

struct mountset_one {
	char *point, *source, *type;
	bool here; /* at this look */
};

struct mountset { /* {0}: nothing is known yet */
	struct mountset_one *v;
	size_t n, cap;
	bool known;   /* there was a look */
	bool crowded; /* there were more than are followed: then which is new is not known */
};

typedef void (*mountset_fn)(void *ctx, const struct mountset_one *x, bool mounted);

void mountset_begin(struct mountset *s);
void mountset_see(struct mountset *s, const char *point, const char *source, const char *type,
		  mountset_fn fn, void *ctx);
/* Those that were not seen are gone. */
void mountset_end(struct mountset *s, mountset_fn fn, void *ctx);
void mountset_release(struct mountset *s);

#endif
