/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfring: perf's side-band of the whole host: one software "dummy" event and its buffer on every
 * CPU, which record executable mappings, execs and names, and on request forks and exits. Stamps
 * are CLOCK_BOOTTIME. No inherit, no sampling, and no build-ids (docs/decisions/0010: they would
 * break perf's own recordings). It is read on a timer; a descriptor becomes readable only when its
 * buffer is half full.
 */
#ifndef SONDE_HOST_PERFRING_H
#define SONDE_HOST_PERFRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct perfring; /* all CPUs */

struct perfring_opts {
	size_t bytes; /* per CPU; a power of two pages; reduced if the kernel allows less
			 (perf_event_mlock_kb) */
	bool task;    /* forks and exits too */
};

/* Receives one record: complete, with its header; borrowed for the call. */
typedef void perfring_fn(void *ctx, const void *rec, size_t len);

int perfring_open(const struct perfring_opts *o, struct perfring **out, struct err *e);
void perfring_close(struct perfring *r);
/*
 * New CPUs get an event, CPUs that went lose theirs; what is left in their buffers goes to `fn`.
 * ask: also find events that died though their CPU is here: it went and came between two checks
 * (this costs each CPU an interrupt). Returns how many CPUs came: what happened on them before is
 * unknown.
 */
int perfring_follow_cpus(struct perfring *r, bool ask, perfring_fn *fn, void *ctx);
/* Descriptors to poll, -1 for none. Slots run from 0 to perfring_slots - 1. */
size_t perfring_slots(const struct perfring *r);
int perfring_fd(const struct perfring *r, size_t slot);
size_t perfring_bytes(const struct perfring *r); /* total of all buffers */
/* Pass each record now in the buffers to `fn`, CPU by CPU. */
void perfring_read(struct perfring *r, perfring_fn *fn, void *ctx);

#endif
