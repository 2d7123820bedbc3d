/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitobjects: time by what was waited on (or where), and by which thread ended the waits. A list
 * that is NULL is empty.
 */
#ifndef SONDE_TOOLS_WAITOBJECTS_H
#define SONDE_TOOLS_WAITOBJECTS_H

#include <stdint.h>

struct waitobject; /* a list's first */

/* `ns` more on this object. `peer` NULL: not known; objects with different peers are summed apart.
 * `tid` 0: the thread that ended the wait, `by`, is not known. */
void waitobjects_add(struct waitobject **all, const char *object, const char *peer, const char *by,
		     uint32_t tid, uint64_t ns);

struct waitobject_top {
	const char *object; /* borrowed from the list; NULL: it is empty */
	const char *peer;   /* who has the other end of it; NULL: not known */
	const char *by;     /* name of the thread that ended most of that, NULL: not known */
	uint32_t by_tid;
};
/* What most of the time was for. */
struct waitobject_top waitobjects_top(const struct waitobject *all);
void waitobjects_free(struct waitobject *all);

#endif
