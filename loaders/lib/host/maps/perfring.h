/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfring: perf's side-band of the whole host: one software "dummy" event and its buffer on every
 * CPU, which record what is mapped executable, exec and names, and where asked forks and exits.
 * Stamps are CLOCK_BOOTTIME. No inherit, no sampling, and no build-ids (docs/decisions/0010: they
 * would break perf's own recordings). It is read on a timer; a descriptor becomes readable only
 * when its buffer is half full.
 */
#ifndef SONDE_HOST_PERFRING_H
#define SONDE_HOST_PERFRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct perfring; /* all CPUs */

struct perfring_opts {
	size_t bytes; /* a CPU; a power of two pages; shrunk where the kernel allows less
			 (perf_event_mlock_kb) */
	bool task;    /* forks and exits too */
};

/* Takes one record: whole, header included; borrowed for the call. */
typedef void perfring_fn(void *ctx, const void *rec, size_t len);

int perfring_open(const struct perfring_opts *o, struct perfring **out, struct err *e);
void perfring_close(struct perfring *r);
/*
 * CPUs that came get an event, those that went lose it; what their buffers still hold is given to
 * `fn`. ask: see also which events have died though their CPU is here: it went and came between two
 * looks (this costs each CPU an interrupt). Returns how many came: what these recorded before is
 * not known.
 */
int perfring_follow_cpus(struct perfring *r, bool ask, perfring_fn *fn, void *ctx);
/* Descriptors to poll, -1 where there is none. Slots run from 0 to perfring_slots - 1. */
size_t perfring_slots(const struct perfring *r);
int perfring_fd(const struct perfring *r, size_t slot);
size_t perfring_bytes(const struct perfring *r); /* of all buffers together */
/* Give each record now in the buffers to `fn`, CPU by CPU. */
void perfring_read(struct perfring *r, perfring_fn *fn, void *ctx);

#endif
