/* SPDX-License-Identifier: Apache-2.0 */
/* waitobjects: a sum of time by what was waited on (or where), and by who ended the waits; which of
 * them is the largest. */
#ifndef SONDE_TOOLS_WAITOBJECTS_H
#define SONDE_TOOLS_WAITOBJECTS_H

#include <stdint.h>

struct waitobject;

struct waitobject_top {
	const char *object; /* borrowed; NULL: there is none */
	const char *peer;   /* who has the other end of it; NULL: not known */
	uint64_t total_ns;  /* weighted */
	const char *by;     /* name of the thread that ended most of that, NULL: not known */
	uint32_t by_tid;
};

/* *all: NULL at first. `peer` NULL: not known; what different ones have is told apart. `tid` 0:
 * nobody known ended it. */
void waitobjects_add(struct waitobject **all, const char *object, const char *peer, const char *by,
		     uint32_t tid, uint64_t ns);
struct waitobject_top waitobjects_top(struct waitobject *all);
void waitobjects_free(struct waitobject *all);

#endif
