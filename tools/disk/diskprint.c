/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskother.h"
#include "tools/disk/diskprint.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/print/json.h"
#include "tools/print/row.h"
#include "tools/print/when.h"

/* ---- sums ---- */

#define FIRST_US (1 << DISK_STEP_0_BITS) /* where in the first step a time lies is not known */

/* In the table "< 8 us" of what lies in the first step. */
static void row_quantile(struct row *o, const char *title, const char *key,
			 const struct disktimes *t, double q)
{
	uint64_t n = disktimes_total(t);
	double us = disktimes_quantile(t, q);
	char text[24];

	if (o->json || !n || us >= FIRST_US) {
		row_us(o, title, TABLE_RIGHT, key, (int64_t)us, n);
		return;
	}
	snprintf(text, sizeof(text), "< %d us", FIRST_US);
	row_cell(o, title, TABLE_RIGHT, text);
}

static void row_quantiles(struct row *o, const char *p50, const char *p99, const char *key50,
			  const char *key99, const struct disktimes *t)
{
	row_quantile(o, p50, key50, t, 0.5);
	row_quantile(o, p99, key99, t, 0.99);
}

/* How many were at hand at a time, on average over the range; how many followed each other. */
static void row_order(struct row *o, const struct diskuse *u, const struct diskuse_sums *s)
{
	double depth = u->seconds > 0 ? (double)(s->queue_us + s->device_us) / 1e6 / u->seconds : 0;
	uint64_t n = s->reads + s->writes;
	char text[32];

	snprintf(text, sizeof(text), "%.2f", depth);
	row_cell(o, "DEPTH", TABLE_SPARE_RIGHT, u->seconds > 0 ? text : NULL);
	row_cell(o, "IN ORDER", TABLE_SPARE_RIGHT,
		 u->ordered && n ?
			 units_share((double)s->sequential, (double)n, text, sizeof(text)) :
			 NULL);
	if (!o->json)
		return;
	row_json(o, "depth", u->seconds > 0 ? json_real(depth) : json_null());
	row_json(o, "sequential",
		 u->ordered ? json_integer((json_int_t)s->sequential) : json_null());
}

static void row_sums(struct row *o, const struct diskuse *u, const struct diskuse_sums *s)
{
	uint64_t n = diskuse_requests(s);

	row_count(o, "READS", TABLE_RIGHT, "reads", s->reads, true);
	row_bytes(o, "READ", TABLE_RIGHT, "read_bytes", s->read_bytes, true);
	row_quantiles(o, "P50", "P99", "read_p50_us", "read_p99_us", &s->read_times);
	row_count(o, "WRITES", TABLE_RIGHT, "writes", s->writes, true);
	row_bytes(o, "WRITTEN", TABLE_RIGHT, "write_bytes", s->write_bytes, true);
	row_quantiles(o, "P50", "P99", "write_p50_us", "write_p99_us", &s->write_times);
	row_count(o, "OTHERS", TABLE_SPARE_RIGHT, "others", s->others, true);
	row_us(o, "QUEUE", TABLE_SPARE_RIGHT, NULL, n ? (int64_t)(s->queue_us / n) : 0, n);
	row_us(o, "DEVICE", TABLE_SPARE_RIGHT, NULL, n ? (int64_t)(s->device_us / n) : 0, n);
	row_us(o, NULL, TABLE_RIGHT, "queue_us", (int64_t)s->queue_us, true);
	row_us(o, NULL, TABLE_RIGHT, "device_us", (int64_t)s->device_us, true);
	row_order(o, u, s);
	row_count(o, "ERRORS", TABLE_RIGHT, "errors", s->errors, true);
	if (o->json) {
		row_json(o, "read_hist", disktimes_json(&s->read_times));
		row_json(o, "write_hist", disktimes_json(&s->write_times));
	}
	if (s->errors)
		row_color(o, TERM_RED);
}

/* ---- disks ---- */

/* A list; `between` are the characters that separate words. */
static json_t *words_json(const char *words, const char *between)
{
	json_t *list = json_array();

	while (*words) {
		size_t len = strcspn(words, between);

		json_array_append_new(list, json_stringn(words, len));
		words += len;
		words += strspn(words, between);
	}
	return list;
}

static void disk_row(struct row *o, const struct diskuse *u, const struct diskuse_disk *d)
{
	char busy[32];

	row_word(o, "DISK", TABLE_LEFT, "disk", d->name);
	row_sums(o, u, &d->sums);
	row_cell(o, "BUSY", TABLE_RIGHT,
		 d->at && u->seconds > 0 ?
			 units_share((double)d->busy_us / 1e6, u->seconds, busy, sizeof(busy)) :
			 NULL);
	row_us(o, NULL, TABLE_RIGHT, "busy_us", (int64_t)d->busy_us, d->at);
	row_number(o, NULL, TABLE_RIGHT, "in_flight", d->in_flight, d->at);
	row_text(o, "LIES ON", TABLE_LEFT, NULL, d->under);
	if (o->json)
		row_json(o, "under", words_json(d->under, ", "));
	row_end(o);
}

struct table *diskprint_disks(const struct diskuse *u)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < u->n_disks; i++)
		disk_row(&o, u, &u->disks[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *diskprint_disk_json(const struct diskuse *u, const struct diskuse_disk *d)
{
	struct row o = row_of_json();

	disk_row(&o, u, d);
	return o.json;
}

/* ---- who ---- */

static void who_row(struct row *o, const struct diskuse *u, const struct diskuse_who *w)
{
	row_number(o, "PID", TABLE_RIGHT, "pid", w->pid, w->pid);
	row_text(o, "NAME", TABLE_MIDDLE, "comm", w->comm);
	row_text(o, "CONTAINER", TABLE_MIDDLE, "container", w->container);
	row_word(o, "DISK", TABLE_LEFT, "disk", w->disk);
	row_us(o, "TIME", TABLE_RIGHT, "us", (int64_t)(w->sums.queue_us + w->sums.device_us), true);
	row_sums(o, u, &w->sums);
	row_end(o);
}

struct table *diskprint_who(const struct diskuse *u, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		who_row(&o, u, &u->who[i]);
	table_omit_empty(o.table);
	return o.table;
}

json_t *diskprint_who_json(const struct diskuse *u, const struct diskuse_who *w)
{
	struct row o = row_of_json();

	who_row(&o, u, w);
	return o.json;
}

/* ---- single requests, and calls ---- */

static void row_process(struct row *o, const struct diskrow *x)
{
	row_number(o, "PID", TABLE_RIGHT, "pid", x->pid, x->pid);
	row_text(o, "NAME", TABLE_MIDDLE, "comm", x->comm);
	row_text(o, "CONTAINER", TABLE_MIDDLE, "container", x->container);
}

#define STACK_SHOWN 8 /* functions in a table */

/* "folio_wait_bit_common < filemap_read" */
static void stack_cell(struct row *o, const char *stack)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	for (int i = 0; i < STACK_SHOWN && *stack; i++) {
		size_t len = strcspn(stack, " ");

		strbuf_addf(&text, "%s%.*s", i ? " < " : "", (int)len, stack);
		stack += len;
		stack += strspn(stack, " ");
	}
	row_cell(o, "WAITED IN", TABLE_MIDDLE, text.len ? strbuf_str(&text) : NULL);
}

static void slow_row(struct row *o, const struct diskrow *x)
{
	char at[32];

	row_cell(o, "TIME", TABLE_LEFT,
		 when_local(x->at_us * 1000, clock_utc_ns(), at, sizeof(at)));
	row_time(o, "time", x->at_us * 1000);
	row_us(o, "TOOK", TABLE_RIGHT, "us", (int64_t)x->us, true);
	row_us(o, "QUEUE", TABLE_RIGHT, "queue_us", (int64_t)(x->us - x->device_us), true);
	row_us(o, "DEVICE", TABLE_RIGHT, "device_us", (int64_t)x->device_us, true);
	row_word(o, "DISK", TABLE_LEFT, "disk", x->text);
	row_word(o, "WHAT", TABLE_LEFT, "op", x->word);
	row_bytes(o, "SIZE", TABLE_RIGHT, "bytes", x->n, true);
	row_number(o, "SECTOR", TABLE_SPARE_RIGHT, "sector", x->sector, true);
	row_process(o, x);
	row_text(o, "THREAD", TABLE_SPARE, "thread", x->thread);
	row_cell(o, "TROUBLE", TABLE_LEFT, x->errors ? "failed" : NULL);
	stack_cell(o, x->stack);
	if (o->json) {
		row_json(o, "failed", json_boolean(x->errors));
		row_json(o, "stack", words_json(x->stack, " "));
	}
	if (x->errors)
		row_color(o, TERM_RED);
	row_end(o);
}

static void sync_row(struct row *o, const struct diskrow *x)
{
	row_process(o, x);
	row_word(o, "CALL", TABLE_LEFT, "call", x->word);
	row_count(o, "CALLS", TABLE_RIGHT, "calls", x->n, true);
	row_us(o, "TIME", TABLE_RIGHT, "us", (int64_t)x->us, true);
	if (x->n == 1) { /* it is known */
		row_us(o, "P50", TABLE_RIGHT, "p50_us", (int64_t)x->us, true);
		row_us(o, "P99", TABLE_RIGHT, "p99_us", (int64_t)x->us, true);
	} else {
		row_quantiles(o, "P50", "P99", "p50_us", "p99_us", &x->times);
	}
	row_us(o, "NOT BACK FOR", TABLE_RIGHT, "lasting_us", (int64_t)x->lasting_us, x->lasting_us);
	row_count(o, "ERRORS", TABLE_RIGHT, "errors", x->errors, true);
	diskother_row(o, "FILE", "file", x->text, "files");
	if (o->json)
		row_json(o, "hist", disktimes_json(&x->times));
	if (x->errors)
		row_color(o, TERM_RED);
	row_end(o);
}

static void open_row(struct row *o, const struct diskrow *x)
{
	row_process(o, x);
	row_count(o, "OPENS", TABLE_RIGHT, "opens", x->n, true);
	row_word(o, "ERROR", TABLE_LEFT, "error", x->word);
	diskother_row(o, "PATH", "path", x->text, "paths");
	row_end(o);
}

/* "97 %" of what was read by calls came from no disk. */
static void row_cached(struct row *o, const struct diskrow *x)
{
	bool read = x->bytes && (!strcmp(x->word, "read") || !strcmp(x->word, "ring_read"));
	uint64_t disk = x->disk_bytes < x->bytes ? x->disk_bytes : x->bytes;
	char share[32];

	row_cell(o, "CACHED", TABLE_RIGHT,
		 read ? units_share((double)(x->bytes - disk), (double)x->bytes, share,
				    sizeof(share)) :
			NULL);
	if (o->json)
		row_json(o, "disk_bytes",
			 read ? json_integer((json_int_t)x->disk_bytes) : json_null());
}

static void row_seen(struct row *o, const struct diskrow *x)
{
	diskother_row(o, "FILE", "file", x->text, "files");
	row_text(o, "IN CONTAINER", TABLE_MIDDLE, "seen", x->stack);
}

static void call_row(struct row *o, const struct diskrow *x)
{
	row_process(o, x);
	row_word(o, "CALL", TABLE_LEFT, "call", x->word);
	row_count(o, "CALLS", TABLE_RIGHT, "calls", x->n, true);
	row_bytes(o, "BYTES", TABLE_RIGHT, "bytes", x->bytes, true);
	row_us(o, "TIME", TABLE_RIGHT, "us", (int64_t)x->us, true);
	row_quantiles(o, "P50", "P99", "p50_us", "p99_us", &x->times);
	row_cached(o, x);
	row_count(o, "ERRORS", TABLE_RIGHT, "errors", x->errors, true);
	row_seen(o, x);
	if (o->json)
		row_json(o, "hist", disktimes_json(&x->times));
	row_end(o);
}

static void lock_row(struct row *o, const struct diskrow *x)
{
	row_process(o, x);
	row_word(o, "LOCK", TABLE_LEFT, "lock", x->word);
	row_count(o, "WAITS", TABLE_RIGHT, "waits", x->n, true);
	row_us(o, "TIME", TABLE_RIGHT, "us", (int64_t)x->us, true);
	row_us(o, "LONGEST", TABLE_RIGHT, "longest_us", (int64_t)x->longest_us, true);
	row_us(o, "STILL WAITS", TABLE_RIGHT, "lasting_us", (int64_t)x->lasting_us, x->lasting_us);
	row_count(o, "WITHOUT", TABLE_SPARE_RIGHT, "errors", x->errors, true);
	row_text(o, "HELD BY", TABLE_MIDDLE, "holder", x->thread);
	row_number(o, "ITS PID", TABLE_RIGHT, "holder_pid", x->sector, x->sector);
	row_seen(o, x);
	row_end(o);
}

static void any_row(struct row *o, const struct diskrow *x, enum diskrows_what what)
{
	static void (*const rows[])(struct row *, const struct diskrow *) = {
		[DISKROWS_SLOW] = slow_row,  [DISKROWS_SYNCS] = sync_row,
		[DISKROWS_OPENS] = open_row, [DISKROWS_CALLS] = call_row,
		[DISKROWS_LOCKS] = lock_row,
	};

	rows[what](o, x);
}

struct table *diskprint_rows(const struct diskrows *r, enum diskrows_what what, size_t n)
{
	struct row o = row_of_table();

	for (size_t i = 0; i < n; i++)
		any_row(&o, &r->rows[i], what);
	table_omit_empty(o.table);
	return o.table;
}

json_t *diskprint_row_json(const struct diskrow *x, enum diskrows_what what)
{
	struct row o = row_of_json();

	any_row(&o, x, what);
	return o.json;
}
