/* SPDX-License-Identifier: Apache-2.0 */
/* capture_tell: progress messages to a parent or a person while a capture runs. */
#include <jansson.h>
#include <string.h>

#include "loaders/lib/bpf/run/private.h"
#include "loaders/lib/host/maps/hostmaps.h"

/* a progress line reads the accounts of every program of the capture: one a second for a person */
#define PROGRESS_NS (950 * MSEC)
/* for sonded, which looks each ten seconds: all loaders in the same seconds, so that it is woken
 * for all of them at once */
#define PROGRESS_REST_NS  (4000 * MSEC)
#define PROGRESS_YOUNG_NS (60 * NSEC_PER_SEC) /* so long a person may be watching it begin */
#define FINISH_NS         (500 * MSEC)

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static void send_ready(struct capture *c, const struct store_writer_stat *s)
{
	int64_t row = store_run_rowid(c->config.store, c->config.run);
	uint64_t period = capture_period(&c->config);

	if (c->tell.ready_sent || (!row && clock_boot_ns() - c->clock.attached_ns < 1000 * MSEC))
		return;
	c->tell.ready_sent = true;
	progress_send(c->config.o->progress,
		      json_pack("{s:s, s:I, s:s, s:s, s:I}", "event", "ready", "run",
				(json_int_t)row, "segment", s->segment, "clock",
				c->config.f->clock ? c->config.f->clock(c->config.state) :
						     c->config.f->name,
				"hz",
				(json_int_t)(period ? (NSEC_PER_SEC + (int64_t)period / 2) /
							      (int64_t)period :
						      0)),
		      true);
}

void capture_send_first(struct capture *c, const struct store_writer_stat *s)
{
	if (c->tell.first_sent || !s->stored)
		return;
	c->tell.first_sent = true;
	c->books.r->first_s = seconds(clock_boot_ns() - c->config.o->begin_ns);
	progress_send(c->config.o->progress,
		      json_pack("{s:s, s:f}", "event", "first", "after_s", c->books.r->first_s),
		      true);
}

static void send_progress(struct capture *c, const struct store_writer_stat *s)
{
	int64_t now = clock_boot_ns();
	json_t *left =
		c->clock.end_ns == INT64_MAX ?
			json_null() :
			json_real(now < c->clock.end_ns ? seconds(c->clock.end_ns - now) : 0);
	struct ledger_figures figures;
	struct family_tally t;
	uint64_t waiting;
	double cores;

	capture_books_tally(&c->books, &t);
	cores = capture_books_self_cores(&c->books, &t, &figures);
	c->books.r->lost[CAPTURE_LOST_STORE] = s->dropped + c->books.refused;
	waiting = c->books.added > s->stored + s->dropped ?
			  c->books.added - s->stored - s->dropped :
			  0;
	progress_send(c->config.o->progress,
		      json_pack("{s:s, s:f, s:o, s:I, s:I, s:f, s:I, s:I, s:I, s:s?, s:I}", "event",
				"progress", "elapsed_s", seconds(now - c->clock.attached_ns),
				"left_s", left, "samples", (json_int_t)c->books.added, "lost",
				(json_int_t)capture_lost(c->books.r), "self_cores", cores, "bpf_ns",
				(json_int_t)figures.bpf_ns, "map_bytes",
				(json_int_t)c->books.ledger.map_bytes, "store_bytes",
				(json_int_t)s->segment_bytes, "store_error",
				s->last_error ? strerror(-s->last_error) : NULL, "waiting",
				(json_int_t)waiting),
		      false);
}

void capture_tell_finish(struct capture *c)
{
	int64_t now = clock_boot_ns();

	if (!c->clock.finish_ns || now - c->tell.finish_told_ns < FINISH_NS)
		return;
	c->tell.finish_told_ns = now;
	progress_send(c->config.o->progress,
		      json_pack("{s:s, s:I, s:f}", "event", "finish", "files",
				(json_int_t)hostmaps_pending(c->config.maps), "left_s",
				now < c->clock.finish_ns ? seconds(c->clock.finish_ns - now) : 0.0),
		      false);
}

static bool progress_due(const struct capture *c, int64_t now)
{
	if (c->config.o->options->bucket_s < FAMILY_ALWAYS_S ||
	    now - c->clock.attached_ns < PROGRESS_YOUNG_NS)
		return now - c->tell.told_ns >= PROGRESS_NS;
	return now / PROGRESS_REST_NS != c->tell.told_ns / PROGRESS_REST_NS;
}

void capture_tell(struct capture *c)
{
	struct store_writer_stat s;

	store_writer_stat(c->config.store, &s);
	send_ready(c, &s);
	capture_send_first(c, &s);
	if (c->config.o->progress->fd < 0 || !progress_due(c, clock_boot_ns()))
		return;
	c->tell.told_ns = clock_boot_ns();
	send_progress(c, &s);
}
