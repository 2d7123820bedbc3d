/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: what `sonde report` adds above and below the flame graphs of the page, as HTML that needs
 * no script: CPU use over time by container (a drawing, and the same as a table), spikes, events,
 * and processes. All of it comes from what `timeline` and `ps` print, so that the numbers are the
 * same. tools/page/script/report.js makes it sortable and links a spike or a process to its stacks;
 * it reads the attributes data-from, data-to (ns) and data-pid of a row.
 */
#ifndef SONDE_TOOLS_REPORT_H
#define SONDE_TOOLS_REPORT_H

#include <stddef.h>

#include "schema/base/strbuf.h"
#include "tools/fold/fold.h"
#include "tools/processes/process_rows.h"
#include "tools/timeline/timeline.h"
#include "tools/timeline/timeline_spikes.h"

#define REPORT_COLUMNS 120 /* of the drawing, at most */
/* containers, and commands outside of them, that have a colour */
#define REPORT_NAMED     7
#define REPORT_SPIKES    10
#define REPORT_EVENTS    40
#define REPORT_PROCESSES 200

struct report {
	const struct timeline *t; /* NULL: the range has no CPU time */
	const struct timeline_spike *spikes;
	size_t n_spikes;
	const struct fold *cpu;           /* NULL, as `t` */
	const struct process_rows *procs; /* of `cpu`, one row per process, most CPU time first */
};

/* Adds the parts above the graphs (the drawing, spikes), and those below (events, processes). */
void report_above(const struct report *r, struct strbuf *s);
void report_below(const struct report *r, struct strbuf *s);

/* Its parts. */
void report_drawing(const struct report *r, struct strbuf *s);
void report_spikes(const struct report *r, struct strbuf *s);
void report_events(const struct timeline *t, struct strbuf *s);
void report_processes(const struct report *r, struct strbuf *s);
/* "03:10:00", prefixed with the date if the range of `t` is longer than a day or begins on another
 * day: UTC. */
void report_time(const struct timeline *t, int64_t ns, struct strbuf *s);

#endif
