/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: samples in Pyroscope's format: messages PushRequest of its push.v1 (POST
 * /push.v1.PusherService/Push), with a pprof profile for each series and range.
 *
 *  1. A series is what one command used in one container (profilegroup.h): labels __name__
 * (process_cpu, memory, and else the kind's name), service_name (the container, else the systemd
 * unit, else the command), comm, container, unit, host. Never a pid or a thread, so that series are
 * as many as programs. Of a kernel thread's name what is before '/' is taken.
 *  2. A profile of a counter has the sum over its range alone, one of a gauge (memory in use,
 * goroutines) the value at its end. So it sets __delta__ = false: the receiver must not subtract
 * the profile before.
 *  3. Samples have no labels, which Pyroscope would turn into series; there is one for each stack.
 *  4. A profile that is sent again has the same ID.
 *  5. sonde's own samples are not sent, as all verbs leave them out.
 */
#ifndef SONDE_PUSH_PROFILE_H
#define SONDE_PUSH_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/push/target.h"
#include "schema/base/err.h"

/* A message of `n` profiles. Not 0 ends it. */
typedef int profile_take(void *ctx, const void *body, size_t len, size_t n, struct err *e);

/* Of from <= ts < to, in seconds since 1970, in messages of about BATCH_BYTES. *rows is raised by
 * the profiles. -EBADMSG of `take` makes it send each profile of that message by itself; those that
 * it will not have then are counted in *refused. */
int profile_range(const char *store, const struct target *t, int64_t from_ts, int64_t to_ts,
		  profile_take *take, void *ctx, uint64_t *rows, uint64_t *refused, struct err *e);

#endif
