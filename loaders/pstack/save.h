/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save: stores blocked threads: a run of the family "pstack", and in it for each thread an amount
 * of kind standing at its stack: one wait, and how long it has lasted so far (0: unknown). Label:
 * why, as of kind offcpu.
 */
#ifndef SONDE_PSTACK_SAVE_H
#define SONDE_PSTACK_SAVE_H

#include <stdint.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/pstack/snapshot.h"
#include "loaders/pstack/thread.h"
#include "loaders/pstack/walk.h"
#include "schema/base/err.h"

struct keep;

struct save_opts {
	const char *dir;
	uint64_t recording; /* of the run, 0: alone */
	uint64_t time_ns;   /* boot clock: time of the stacks */
	int64_t at_ns; /* UTC, the latest time to store them under; 0: the time of the stacks */
};

/* `hm` is borrowed until save_close. */
int save_open(const struct save_opts *o, struct hostmaps *hm, struct keep **out, struct err *e);
/* `walk` NULL: its user part is unknown. A wait that began after at_ns is left out. */
void save_thread(struct keep *k, const struct pstack_record *r, const struct thread *t,
		 const struct walk *walk);
/* Writes what was kept. NULL is fine. */
int save_close(struct keep *k, struct err *e);

#endif
