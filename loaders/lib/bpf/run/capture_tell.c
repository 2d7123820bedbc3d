// SPDX-License-Identifier: Apache-2.0
/* capture_tell: what a parent or a person hears while a capture runs. */
#include <jansson.h>
#include <string.h>

#include "loaders/lib/bpf/run/capture_parts.h"

/* a progress line a second: it reads the accounts of every program of the capture */
#define PROGRESS_NS (950 * MSEC)

double capture_self_cores(struct capture *c, const struct family_tally *t,
			  struct ledger_figures *now)
{
	int64_t wall = clock_boot_ns() - c->attached_ns;

	ledger_read(&c->ledger, c->maps, t, now);
	ledger_settle(&c->ledger, now);
	return wall > 0 ? (double)ledger_busy_ns(&c->ledger, now) / (double)wall : 0;
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static void send_ready(struct capture *c, const struct store_writer_stat *s)
{
	int64_t row = store_run_rowid(c->store, c->run);
	uint64_t period = capture_period(c);

	if (c->ready_sent || (!row && clock_boot_ns() - c->attached_ns < 1000 * MSEC))
		return;
	c->ready_sent = true;
	progress_send(c->o->progress,
		      json_pack("{s:s, s:I, s:s, s:s, s:I}", "event", "ready", "run",
				(json_int_t)row, "segment", s->segment, "clock",
				c->f->clock ? c->f->clock(c->state) : c->f->name, "hz",
				(json_int_t)(period ? (NSEC_PER_SEC + (int64_t)period / 2) /
							      (int64_t)period :
						      0)),
		      true);
}

void capture_send_first(struct capture *c, const struct store_writer_stat *s)
{
	if (c->first_sent || !s->stored)
		return;
	c->first_sent = true;
	c->r->first_s = seconds(clock_boot_ns() - c->o->begin_ns);
	progress_send(c->o->progress,
		      json_pack("{s:s, s:f}", "event", "first", "after_s", c->r->first_s), true);
}

static void send_progress(struct capture *c, const struct store_writer_stat *s)
{
	int64_t now = clock_boot_ns();
	json_t *left = c->end_ns == INT64_MAX ?
			       json_null() :
			       json_real(now < c->end_ns ? seconds(c->end_ns - now) : 0);
	struct ledger_figures figures;
	struct family_tally t;
	double cores;

	capture_tally(c, &t);
	cores = capture_self_cores(c, &t, &figures);
	c->r->lost[CAPTURE_LOST_STORE] = s->dropped + c->refused;
	progress_send(c->o->progress,
		      json_pack("{s:s, s:f, s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:s?}", "event",
				"progress", "elapsed_s", seconds(now - c->attached_ns), "left_s",
				left, "samples", (json_int_t)c->added, "lost",
				(json_int_t)capture_lost(c->r), "self_cores", cores, "bpf_ns",
				(json_int_t)figures.bpf_ns, "map_bytes",
				(json_int_t)c->ledger.map_bytes, "store_bytes",
				(json_int_t)s->segment_bytes, "store_error",
				s->last_error ? strerror(-s->last_error) : NULL),
		      false);
}

void capture_tell(struct capture *c)
{
	struct store_writer_stat s;

	store_writer_stat(c->store, &s);
	send_ready(c, &s);
	capture_send_first(c, &s);
	if (c->o->progress->fd < 0 || clock_boot_ns() - c->told_ns < PROGRESS_NS)
		return;
	c->told_ns = clock_boot_ns();
	send_progress(c, &s);
}
