/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: from what was asked for (probespec) and what this host has there (fields, arguments of a
 * USDT probe) to what the program reads (probe_plan). Pure.
 */
#ifndef SONDE_PROBE_PLAN_H
#define SONDE_PROBE_PLAN_H

#include <stddef.h>

#include <linux/types.h>

#include "loaders/probe/format.h"
#include "probes/probe/plan.h"
#include "schema/base/err.h"
#include "schema/probespec/spec.h"

/* A USDT probe's arguments, as its note says (usdt.h); a fetch whose `from` is
 * PROBE_FROM_NOTHING cannot be read. */
struct plan_notes {
	struct probe_fetch args[12];
	size_t n;
};

struct plan_source {                       /* what a hook has */
	const struct format_field *fields; /* of the tracepoint; of a system call those of its
					      begin; none of syscall:* */
	size_t n_fields;
	const struct plan_notes *notes; /* of usdt, else NULL */
};

/*
 * Completes `s` (its arguments, where none were chosen, and their types) and fills *out, all but
 * `index` and `self`. `from`: of latency, the first hook's; else NULL. EXIT_USAGE, with what there
 * is.
 */
int plan_make(struct probespec *s, const struct plan_source *from, const struct plan_source *at,
	      struct probe_plan *out, struct err *e);

#endif
