/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes: what each process used. A process with a single thread that has not run since the
 * previous reading, by schedstat to the nanosecond, has used nothing: it is read no further, except
 * once a minute.
 *
 * CPU time is that of all its threads, ended ones included, as the kernel counts it in ticks; the
 * kernel has the time in the run queue only by thread, so here it is only that of single-threaded
 * processes. Its use between the last reading and its end comes from the kernel's sums at its end
 * (ended.h); its last reading is kept until these arrive.
 */
#ifndef SONDE_HOST_FAMILY_PROCESSES_H
#define SONDE_HOST_FAMILY_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/run/meter.h"
#include "schema/base/strbuf.h"

/* so long it is known how one was read that is met no more; hostmaps forgets sooner */
#define PROCESSES_KEEP_NS 20000000000ll

struct family_host;
struct hostmaps_process;
struct mp_used;
struct processes_known;

struct processes {
	struct meter meter, files; /* files: of those that have half of what they may have */
	struct meter mem;          /* of those with files or shared memory in theirs */
	struct processes_known *known;
	uint64_t round;
	struct strbuf text;
	bool swapping; /* something is in swap: how much of each is asked */
	bool status;   /* `text` is the status of the process that is read now */
};

void processes_init(struct processes *ps, int64_t idle_ns);
void processes_release(struct processes *ps);
/* Is it part of what the capture is narrowed to? */
bool processes_wants(const struct family_host *h, const struct hostmaps_process *p);
/* One of them; what was never read and began at young_ns (boot clock) or later, began at 0. */
void processes_read(struct processes *ps, const struct meter_round *r, struct hostmaps_process *p,
		    int64_t young_ns);
void processes_end(struct processes *ps);
/* What it used in all. The difference to its last reading is stored; false: it was never read. */
bool processes_used(struct processes *ps, const struct meter_round *r, const struct mp_used *u,
		    struct hostmaps_process *p);
/* CPU time in us that an ended process used after its last reading, rather less than more, and
 * without what is already stored. *whole: it was never read, and this is over its life. */
uint64_t processes_since(const struct processes *ps, const struct mp_used *u,
			 const struct hostmaps_process *p, bool *whole);
/* One that was never read: all that it used. */
void processes_whole(struct processes *ps, const struct meter_round *r, const struct mp_used *u,
		     struct hostmaps_process *p);
/* CPU time in us, split in the proportion of its ticks; neither part is less than in its last
 * reading (NULL: there is no last reading), and their sum is exact unless it is less than the last
 * one's. */
void processes_split(const struct mp_used *u, const struct fact_row *last, uint64_t *user_us,
		     uint64_t *system_us);

#endif
