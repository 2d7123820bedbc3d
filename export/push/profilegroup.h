/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profilegroup: samples of a range, kind by kind, in one part for each command in a container, unit
 * or the host: what is a series of profiles. Never a pid or a thread, so that series are as many as
 * programs. Of a kernel thread's name what is before '/' is taken. sonde's own samples are left
 * out, as all verbs do.
 */
#ifndef SONDE_PUSH_PROFILEGROUP_H
#define SONDE_PUSH_PROFILEGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/push/target.h"
#include "schema/base/err.h"
#include "tools/fold/fold.h"

struct profile_group { /* whose samples these are; "": none */
	const char *container, *unit, *comm;
	size_t comm_len;
};

struct profile_sink {
	/* A part: one leaf for each stack, in order of its node; its first process is one of the
	 * group's. `name`: of the kind's series. Nodes, frames and texts are there until `end`,
	 * which may be NULL. Not 0 ends all. */
	int (*group)(void *ctx, const struct fold *part, const struct profile_group *g,
		     const char *name, struct err *e);
	int (*end)(void *ctx, struct err *e);
};

/* cpu, offcpu, runqueue, memory, mutex, block, goroutine, threadcreate, gocpu, gomemory, goblock,
 * gomutex */
bool profile_named(const char *name, size_t len);
/* Those of the target's kinds, of from <= ts < to, in seconds since 1970. */
int profile_groups(const char *store, const struct target *t, int64_t from_ts, int64_t to_ts,
		   const struct profile_sink *sink, void *ctx, struct err *e);

#endif
