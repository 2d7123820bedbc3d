/* SPDX-License-Identifier: Apache-2.0 */
/*
 * side_band_feed: merges two sources, perf's side-band and the small BPF program, into one stream
 * in order of time.
 *
 * Both are read on a timer. Each reading first takes T = now - SIDE_BAND_MARGIN_NS, then reads the
 * buffers: everything older than T has arrived, is sorted and goes to the world; the rest waits for
 * the next reading. A record older than the previous T is counted as late and applied anyway.
 *
 * Without the rights for either there is only /proc (procscan.h): no side-band, no program, and no
 * unwind tables.
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

/* Without BPF (no rights, no BTF) it works from the side-band and /proc, and *why says the reason
 * (static text or ""); if the side-band is refused too, from /proc alone. processes_fd: the map of
 * that name, into which the program copies entries at a fork; -1: there is none. store_dir: for
 * kerneltypes_path. */
int side_band_feed_open(struct world *w, int processes_fd, const char *store_dir,
			struct side_band_feed **out, char *why, size_t why_size, struct err *e);
void side_band_feed_close(struct side_band_feed *f);
bool side_band_feed_has_perf(const struct side_band_feed *f); /* false: /proc alone */
/* Adds descriptors to epoll_fd with data.ptr = the feed. When one is readable, read now. */
void side_band_feed_poll(struct side_band_feed *f, int epoll_fd);
/* Take in all processes of /proc. Called again after a loss, it checks all exec ids. */
void side_band_feed_seed(struct side_band_feed *f);
/* Is it still the same process and exec? Asks the kernel for all processes. */
bool side_band_feed_is_still(struct side_band_feed *f, const struct proc *p);
/* The ring of execs for exec_race; -1: none. */
int side_band_feed_urgent_fd(const struct side_band_feed *f);
/* Read, apply everything up to T; returns T. */
uint64_t side_band_feed_read(struct side_band_feed *f);
/* Did anything happen since the reading before the last? */
bool side_band_feed_is_busy(const struct side_band_feed *f);
/* The next reading is far off: let the next exec make a descriptor of side_band_feed_poll readable.
 */
void side_band_feed_sleep(struct side_band_feed *f);
/* Records lost since the last call, or never made because the kernel left out a run of a program.
 * *since_ns: moved back to the earliest time of a loss. */
uint64_t side_band_feed_lost(struct side_band_feed *f, uint64_t *since_ns);
uint64_t side_band_feed_late(const struct side_band_feed *f);
/* Call from time to time: true if CPUs came online; what was mapped on them until now is unknown.
 * `ask`: as in perfring_follow_cpus. */
bool side_band_feed_follow_cpus(struct side_band_feed *f, bool ask);
/* Every few seconds, for what no event reported. In two steps: look, and compare a while later. */
void side_band_feed_reconcile_look(struct side_band_feed *f);
void side_band_feed_reconcile_act(struct side_band_feed *f);
/* Also asks the kernel for the left-out runs that side_band_feed_lost reports. */
void side_band_feed_cost(struct side_band_feed *f, struct side_band_feed_cost *c);

#endif
