/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed: the two sources, perf's side-band and the small BPF program, as one stream in order of
 * time.
 *
 * Both are read on a timer. At each reading T = now - FEED_MARGIN_NS is taken before the buffers
 * are; what is older than T is then all there, is sorted and given to the world; the rest waits for
 * the next reading. A record that comes later than the T of before is counted and applied all the
 * same.
 *
 * Who may have neither has /proc alone (procscan.h): no side-band, no program, and no unwind
 * tables.
 */
#ifndef SONDE_MAPS_FEED_H
#define SONDE_MAPS_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct feed;
struct proc;
struct world;

#define FEED_MARGIN_NS 5000000ull

struct feed_cost {
	uint64_t bpf_ns, bpf_runs, map_bytes;
};

/* Without BPF (no rights, no BTF) it works from the side-band and /proc alone: *why says so then
 * (static text or ""); where the side-band is refused too, from /proc. processes_fd: the map of
 * that name, into which the program copies entries at a fork; -1: there is none. store_dir: for
 * kerneltypes_path. */
int feed_open(struct world *w, int processes_fd, const char *store_dir, struct feed **out,
	      char *why, size_t why_size, struct err *e);
void feed_close(struct feed *f);
bool feed_side_band(const struct feed *f); /* false: /proc alone */
/* Descriptors are put into epoll_fd with data.ptr = the feed; readable: read now. */
void feed_poll(struct feed *f, int epoll_fd);
/* Take in all processes of /proc. again: after a loss, exec ids are checked anew. */
void feed_seed(struct feed *f);
/* Is it still the process, and the exec, that it is known as? Asks the kernel for all processes. */
bool feed_is_still(struct feed *f, const struct proc *p);
/* The ring of execs that early looks at; -1: there is none. */
int feed_urgent_fd(const struct feed *f);
/* Read, apply up to T; returns T. */
uint64_t feed_read(struct feed *f);
/* Has anything happened since the reading before the last? */
bool feed_is_busy(const struct feed *f);
/* The next reading is far off: the next exec makes a descriptor of feed_poll readable. */
void feed_sleep(struct feed *f);
/* Records lost since the last call, or never made since the kernel left out a program's run.
 * *since_ns: moved back to where the first may be. */
uint64_t feed_lost(struct feed *f, uint64_t *since_ns);
uint64_t feed_late(const struct feed *f);
/* Now and then: have CPUs come? What was mapped on them until now is not known then. ask: as in
 * perfring_follow_cpus. */
bool feed_follow_cpus(struct feed *f, bool ask);
/* Every few seconds: what no event said. Two steps: look, and a while later compare. */
void feed_reconcile_look(struct feed *f);
void feed_reconcile_act(struct feed *f);
/* Asks the kernel for what feed_lost tells of runs left out, too. */
void feed_cost(struct feed *f, struct feed_cost *c);

#endif
