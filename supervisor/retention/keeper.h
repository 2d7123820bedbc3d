/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper: the flight ring while sonded runs. The loaders write it
 * (schema/store/write/commit/fine.h); when something happens, the keeper has sonde-seal put a
 * window of it into the store (schema/store/archive/keep.h).
 *
 *   1. A window is [t - 10 min, t + 30 s], or what `sonde keep` asks for. It is put into the store
 *      KEEPER_LATE_NS after its end, when the loaders have written it.
 *   2. What happens while a window waits extends it, and its reason is added. It waits no longer
 *      than KEEPER_WAIT_NS for that: the ring goes on, and its begin would be gone.
 *   3. Of one cause a window is kept once an hour, and the windows of the last 24 hours may take
 *      an eighth of the store's budget, those of an earlier sonded too. `sonde keep` is not
 * limited. A cause is what happened and to whom: two services that are slow are two.
 *   4. If archiving is at work, or the pass fails, it is tried again; five times.
 *      What waits is noted in the ring's folder, so that a sonded that is killed or stopped keeps
 * it when it is back.
 *   5. What happens: the kernel killed a process for memory (oom_kill in /proc/vmstat); all who
 *      worked waited for memory, or for a disk, for a large part of two seconds (PSI). Loaders
 *      report the bad end of a container, a burst of lines or of errors in a log, and a service
 * that is far slower, or fails far more often, than in its last hour; `sonde check --keep` a check
 *      that fails.
 * While the family cpu is reduced because of a limit the ring is given up: its loader is started
 * without it.
 */
#ifndef SONDE_SUPERVISOR_KEEPER_H
#define SONDE_SUPERVISOR_KEEPER_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "supervisor/children/pass.h"

#define KEEPER_BEFORE_NS (600 * NSEC_PER_SEC)
#define KEEPER_AFTER_NS  (30 * NSEC_PER_SEC)
#define KEEPER_LATE_NS   (13 * NSEC_PER_SEC)
#define KEEPER_WAIT_NS   (120 * NSEC_PER_SEC)
#define KEEPER_FREQ      99 /* about as many samples a second has the ring */
#define KEEPER_CAUSES    256
#define KEEPER_WHY       400 /* of all reasons of a window together */
#define KEEPER_PRESSURES 2

struct keeper_window {
	int64_t from_ns, to_ns, at_ns; /* UTC; to_ns 0: none waits */
	int64_t due_ns, latest_ns;     /* monotonic clock; due_ns is at most latest_ns */
	char why[KEEPER_WHY];
};

struct keeper {
	const char *store; /* borrowed */
	char ring[PATH_MAX];
	bool wanted;
	uint64_t bytes; /* the ring's size */
	struct pass pass;
	struct keeper_window next, now; /* now: of the pass */
	struct keeper_cause {
		char name[160];
		int64_t last_ns; /* monotonic clock; 0: never */
	} causes[KEEPER_CAUSES];
	int pressure_fd[KEEPER_PRESSURES]; /* -1: none */
	int64_t looked_ns;
	uint64_t oom_kills; /* as of the last look */
	bool oom_known;
	unsigned int failures;
	uint64_t windows, kept_bytes;     /* since sonded started */
	int64_t last_from_ns, last_to_ns; /* of the last one kept; UTC, 0: none */
	char last_why[KEEPER_WHY];
};

void keeper_init(struct keeper *k, const char *store);
void keeper_release(struct keeper *k);
/* A configuration, also a new one. A ring that is not wanted any more is removed. */
void keeper_follow(struct keeper *k, bool wanted, uint64_t bytes);
/* The sampling rate of the CPU family with the ring, and of how many samples the store gets one;
 * 0: no ring. */
uint32_t keeper_freq(const struct keeper *k, uint32_t coarse, uint32_t *share);
/* Something happened that a window is kept for, unless one of this cause was kept within the hour.
 * A cause is cut after 159 bytes; past KEEPER_CAUSES of them in an hour, others are one. `budget`:
 * of the store. */
void keeper_happened(struct keeper *k, uint64_t budget, const char *cause, const char *why);
/* -ENOENT with EXIT_NOTHING: there is no ring. */
int keeper_refuses(const struct keeper *k, struct err *e);
/* A person asks for the last `last_ns`. -ENOENT with EXIT_NOTHING: there is no ring. */
int keeper_ask(struct keeper *k, int64_t last_ns, const char *why, struct err *e);
/* `budget`: of the store; `busy`: an archive is being made. */
void keeper_tick(struct keeper *k, uint64_t budget, bool busy);
void keeper_stop(struct keeper *k);
void keeper_ended(struct keeper *k, int status);
json_t *keeper_json(const struct keeper *k);
/* Pure: of a text as /proc/vmstat. false: it has no such line. */
bool keeper_oom_kills(const char *vmstat, uint64_t *out);

#endif
