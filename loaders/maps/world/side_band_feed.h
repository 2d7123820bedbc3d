/* SPDX-License-Identifier: Apache-2.0 */
/*
 * side_band_feed: the two sources, perf's side-band and the small BPF program, as one stream in
 * order of time.
 *
 * Both are read on a timer. At each reading T = now - SIDE_BAND_MARGIN_NS is taken before the
 * buffers are; what is older than T is then all there, is sorted and given to the world; the rest
 * waits for the next reading. A record that comes later than the T of before is counted and applied
 * all the same.
 *
 * Who may have neither has /proc alone (procscan.h): no side-band, no program, and no unwind
 * tables.
 */
#ifndef SONDE_MAPS_SIDE_BAND_FEED_H
#define SONDE_MAPS_SIDE_BAND_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct side_band_feed;
struct proc;
struct world;

#define SIDE_BAND_MARGIN_NS 5000000ull

struct side_band_feed_cost {
	uint64_t bpf_ns, bpf_runs, map_bytes;
};

/* Without BPF (no rights, no BTF) it works from the side-band and /proc alone: *why says so then
 * (static text or ""); where the side-band is refused too, from /proc. processes_fd: the map of
 * that name, into which the program copies entries at a fork; -1: there is none. store_dir: for
 * kerneltypes_path. */
int side_band_feed_open(struct world *w, int processes_fd, const char *store_dir,
			struct side_band_feed **out, char *why, size_t why_size, struct err *e);
void side_band_feed_close(struct side_band_feed *f);
bool side_band_feed_has_perf(const struct side_band_feed *f); /* false: /proc alone */
/* Descriptors are put into epoll_fd with data.ptr = the feed; readable: read now. */
void side_band_feed_poll(struct side_band_feed *f, int epoll_fd);
/* Take in all processes of /proc. again: after a loss, exec ids are checked anew. */
void side_band_feed_seed(struct side_band_feed *f);
/* Is it still the process, and the exec, that it is known as? Asks the kernel for all processes. */
bool side_band_feed_is_still(struct side_band_feed *f, const struct proc *p);
/* The ring of execs that early looks at; -1: there is none. */
int side_band_feed_urgent_fd(const struct side_band_feed *f);
/* Read, apply up to T; returns T. */
uint64_t side_band_feed_read(struct side_band_feed *f);
/* Has anything happened since the reading before the last? */
bool side_band_feed_is_busy(const struct side_band_feed *f);
/* The next reading is far off: the next exec makes a descriptor of side_band_feed_poll readable. */
void side_band_feed_sleep(struct side_band_feed *f);
/* Records lost since the last call, or never made since the kernel left out a program's run.
 * *since_ns: moved back to where the first may be. */
uint64_t side_band_feed_lost(struct side_band_feed *f, uint64_t *since_ns);
uint64_t side_band_feed_late(const struct side_band_feed *f);
/* Now and then: have CPUs come? What was mapped on them until now is not known then. ask: as in
 * perfring_follow_cpus. */
bool side_band_feed_follow_cpus(struct side_band_feed *f, bool ask);
/* Every few seconds: what no event said. Two steps: look, and a while later compare. */
void side_band_feed_reconcile_look(struct side_band_feed *f);
void side_band_feed_reconcile_act(struct side_band_feed *f);
/* Asks the kernel for what side_band_feed_lost tells of runs left out, too. */
void side_band_feed_cost(struct side_band_feed *f, struct side_band_feed_cost *c);

#endif
