/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger: the cost of the capture itself, in the terms of schema/store/write/writer.h: this
 * process, its BPF programs and maps, sonde-maps and its sonde-index children; while it records,
 * and separately for its start and its end. A program's run time is the kernel's figure if
 * kernel.bpf_stats_enabled is on, else what the family's program measured.
 */
#ifndef SONDE_BPF_LEDGER_H
#define SONDE_BPF_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/store/write/writer.h"

struct bpf_object;

struct ledger_figures { /* since the programs started; for sonde-maps our share (hostmaps_cost) */
	uint64_t own_cpu_ns, maps_cpu_ns, index_cpu_ns;
	uint64_t bpf_ns, bpf_runs, maps_bpf_ns, maps_bpf_runs;
	uint32_t helper; /* pid of the family's helper process, 0: none. Its CPU time is in
			    own_cpu_ns */
};

struct ledger {
	const char *family;
	struct bpf_object *obj;      /* borrowed; NULL: there are no programs */
	struct ledger_figures begin; /* when the capture was ready: everything before is start-up */
	struct ledger_figures booked; /* already in the store */
	bool begun;                   /* the cost of the start is in the store */
	uint64_t map_bytes; /* the kernel's charge for our maps, at the beginning or the last
			       booking */
};

void ledger_init(struct ledger *l, const char *family, struct bpf_object *obj);
void ledger_read(const struct ledger *l, const struct hostmaps *hm, const struct family_tally *t,
		 struct ledger_figures *out);
/* Mark the end of start-up. Reads the maps' sizes, too. */
void ledger_begin(struct ledger *l, const struct ledger_figures *now);
/* sonde-maps reports its cost once a second: the first report counts as start-up too. */
void ledger_settle(struct ledger *l, const struct ledger_figures *now);
/* CPU time of all of sonde, programs included, since the capture was ready. */
uint64_t ledger_busy_ns(const struct ledger *l, const struct ledger_figures *now);
/* The same with start-up. */
uint64_t ledger_all_ns(const struct ledger_figures *now);
/* Write the cost since the last booking; the first time also the start's, separately. */
void ledger_book(struct ledger *l, const struct hostmaps *hm, const struct ledger_figures *now,
		 struct store_writer *w, uint32_t run, int64_t utc_ns);
/* The capture is over and booked: the cost since then belongs to its end. */
void ledger_book_end(struct ledger *l, const struct ledger_figures *now, struct store_writer *w,
		     uint32_t run, int64_t utc_ns);

#endif
