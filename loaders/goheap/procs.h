/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procs: the Go processes of a capture, and when each is read.
 *
 * Every process that sonde-maps reports is checked once: which file it runs, and whether the file's
 * index says Go. One that is Go is read at once, after 1, 2, 4 s and so on, up to the interval,
 * then at each interval; and at the capture's end. So a process that lives 10 s has been read when
 * it was 7 s old. One near its cgroup's memory limit (pressure.h) is read each second. Readings are
 * spread: not more than READ_NS of them in one turn.
 */
#ifndef SONDE_GOHEAP_PROCS_H
#define SONDE_GOHEAP_PROCS_H

#include <stdint.h>

#include "loaders/goheap/switchon.h"
#include "loaders/lib/bpf/family.h"

struct lastprof;
struct procs;

struct procs_opts {
	int64_t interval_ns;
	int64_t begun_ns; /* boot clock: what runs since then has no base, all of it was allocated
			     in the capture */
	struct lastprof *lastprof; /* NULL: there are no last profiles */
	struct switchon_opts switchon;
};

struct procs *procs_new(const struct procs_opts *o);
void procs_free(struct procs *ps);
void procs_poll(struct procs *ps, struct family_host *h, int64_t now_ns);
/* Reads all of them a last time, until `until_ns`. */
void procs_finish(struct procs *ps, struct family_host *h, int64_t until_ns);

#endif
