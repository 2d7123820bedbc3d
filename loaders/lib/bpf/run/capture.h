/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: one run of a family, from loading its programs to its last row in the store.
 *
 *   ring         -> hold (until sonde-maps has caught up with the record's time) -> naming ->
 *                   store, by bucket
 *   ring `late`  -> late (until the rows that its stack needs are there) -> unwinding -> naming ->
 *                   store, by bucket
 *
 * One thread does all this every 100 ms at the start, then every second (every two
 * where no person waits and the family has no stacks); a ring that fills fast
 * wakes it. The store has a thread for writing. Every event that the family's program saw is stored
 * or counted under one reason; at the end seen = stored + all losses, exactly:
 *   ring       the program found the ring full
 *   room       the program found a table full, or no memory for an entry of it
 *   pairs      the same of a table of pairs of threads: who woke whom, who ran while another
 *              waited. What each thread did is counted all the same
 *   hold       too many records were waiting for sonde-maps
 *   unknown    the capture is of some processes, and this one was not known in time
 *   malformed  a record that is not the family's
 *   store      what the store's writer could not commit (it books these itself)
 *   throttled  the kernel held back sampling: an estimate by time, added to `seen` too
 *   missed     the kernel skipped runs of a program; added to `seen` too
 * Side-band records that sonde-maps lost are not samples: they have reason "maps" in the store and
 * are not part of this sum.
 */
#ifndef SONDE_BPF_CAPTURE_H
#define SONDE_BPF_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/start/command.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/options.h"
#include "loaders/lib/bpf/run/progress.h"
#include "loaders/lib/bpf/start/target.h"

struct capture_opts {
	const struct family *family;
	const struct options *options;
	const char *command_line; /* as typed, for the store */
	struct target *target;    /* receives the targets that sonded selects */
	struct command *command;
	struct progress *progress;
	int64_t begin_ns; /* boot clock, when the program started */
	int signal_fd;    /* SIGINT, SIGTERM, SIGHUP, SIGCHLD, blocked for all else */
};

enum capture_loss {
	CAPTURE_LOST_RING,
	CAPTURE_LOST_ROOM,
	CAPTURE_LOST_PAIRS,
	CAPTURE_LOST_HOLD,
	CAPTURE_LOST_UNKNOWN,
	CAPTURE_LOST_MALFORMED,
	CAPTURE_LOST_STORE,
	CAPTURE_LOST_THROTTLED,
	CAPTURE_LOST_MISSED,
	CAPTURE_LOST_N
};
extern const char *const capture_loss_names[CAPTURE_LOST_N];

struct capture_report { /* filled in as far as the capture came */
	int64_t run;    /* the run's id in its segment, 0: none */
	char segment[256];
	uint64_t seen, stored, lost[CAPTURE_LOST_N], maps_lost;
	uint64_t frames, frames_named, processes;
	uint64_t user, user_complete; /* samples with a user stack; of those, the ones whose stack
					 reached its root */
	uint64_t stale; /* records named before sonde-maps had caught up with their time */
	uint64_t unfollowed;
	uint64_t unsure; /* of `stored`: its disk failed before they were on it for certain */
	int64_t from_ns, to_ns;      /* UTC */
	int64_t took_ns;             /* by the boot clock: the wall clock may be set meanwhile */
	double first_s;              /* < 0: nothing was stored */
	double self_cores;           /* CPU of sonde while it captured */
	double edges_cpu_s;          /* to start, and to name and store what was left at the end */
	uint64_t run_ns, run_p99_ns; /* in the family's program: mean of all, and the 99th
					percentile's upper bound */
	bool interrupted;
};
uint64_t capture_lost(const struct capture_report *r);

/* Runs to its end. 0, or a negative errno with `e`; the report is filled in either case. */
int capture_run(const struct capture_opts *o, struct capture_report *r, struct err *e);

#endif
