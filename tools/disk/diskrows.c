/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskrows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/disk/diskother.h"
#include "tools/net/netflows.h"
#include "tools/select/askrows.h"

static const char RECORDED[] =
	"SELECT 1 FROM run WHERE family = 'disk' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1";
/* process, text, word, n, us, device_us, errors, thread, sector, at_us, stack */
#define COLUMNS 11
static const struct {
	const char *head, *tail;
	bool times, single;
} QUERIES[] = {
	[DISKROWS_SLOW] =
		{"SELECT coalesce(process_id, 0), disk, op, bytes, us, device_us, failed, thread, sector, at_us, stack",
		 " FROM slow_blocks WHERE ts BETWEEN ?1 AND ?2", false, true},
	[DISKROWS_SYNCS] =
		{"SELECT process_id, file, call, sum(calls), sum(us), 0, sum(errors), '', 0, 0, ''",
		 " FROM fsyncs WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, file, call", true,
		 false},
	[DISKROWS_OPENS] =
		{"SELECT coalesce(process_id, 0), path, error, sum(opens), 0, 0, 0, '', 0, 0, ''",
		 " FROM failed_opens WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, path, error",
		 false, false},
	[DISKROWS_CALLS] =
		{"SELECT coalesce(process_id, 0), file, call, sum(calls), sum(us), sum(bytes), sum(errors), '', 0, 0, max(seen)",
		 " FROM file_calls WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, file, call",
		 true, false},
	[DISKROWS_LOCKS] =
		{"SELECT coalesce(process_id, 0), file, lock, sum(coalesce(waits, 0)), sum(coalesce(us, 0)), max(coalesce(longest_us, 0)),"
		 " sum(coalesce(errors, 0)), holder, coalesce(holder_pid, 0), max(coalesce(lasting_us, 0)), max(seen)",
		 " FROM lock_waits WHERE ts BETWEEN ?1 AND ?2 GROUP BY process_id, file, lock, holder, holder_pid",
		 false, false},
};

/* Of files that were read by calls: what disks read of them for the same process. */
static const char FROM_DISKS[] =
	"SELECT process_id, file, 'read', sum(read_bytes), 0, 0, 0, '', 0, 0, '' FROM disk_files WHERE ts BETWEEN ?1 AND ?2 AND read_bytes > 0"
	" AND process_id IS NOT NULL GROUP BY process_id, file";

/* Of calls that did not return in the range: one that returns is counted later with all its time.
 */
static const char LASTING[] =
	"SELECT l.process_id, l.file, l.call, 0, max(l.us), 0, 0, '', 0, 0, '' FROM lasting_fsyncs l WHERE l.ts BETWEEN ?1 AND ?2"
	" AND NOT EXISTS (SELECT 1 FROM fsyncs f WHERE f.ts BETWEEN l.ts AND ?2 AND f.us >= l.us"
	"   AND f.process_id = l.process_id AND f.file = l.file AND f.call = l.call)"
	" GROUP BY l.process_id, l.file, l.call";

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	enum diskrows_what what;
	struct diskrows *out;
	size_t cap;
	struct idmap row_of;
};

static void take_run(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

static void row_release(struct diskrow *x)
{
	free(x->container);
	free(x->comm);
	free(x->text);
	free(x->word);
	free(x->thread);
	free(x->stack);
}

static struct diskrow *row_new(struct reading *r, const struct store_process_row *p,
			       sqlite3_stmt *st)
{
	struct diskrow *x;

	mem_grow(r->out->rows, r->out->n, r->cap);
	x = &r->out->rows[r->out->n++];
	*x = (struct diskrow){.container = mem_strdup(p ? p->container : ""),
			      .comm = mem_strdup(p ? p->comm : ""),
			      .pid = p ? (int64_t)p->pid : 0,
			      .text = mem_strdup(askrows_text(st, 1)),
			      .word = mem_strdup(askrows_text(st, 2)),
			      .thread = mem_strdup(askrows_text(st, 7)),
			      .stack = mem_strdup(askrows_text(st, 10)),
			      .sector = sqlite3_column_int64(st, 8),
			      .at_us = sqlite3_column_int64(st, 9)};
	return x;
}

static struct diskrow *row_of(struct reading *r, const struct store_process_row *p,
			      sqlite3_stmt *st)
{
	uint64_t h = hash_str(hash_str(HASH_SEED, p ? p->container : ""), p ? p->comm : ""), *at;
	struct diskrow *x;
	bool fresh;

	if (QUERIES[r->what].single)
		return row_new(r, p, st);
	h = hash_str(hash_str(h, askrows_text(st, 1)), askrows_text(st, 2));
	h = hash_str(h, askrows_text(st, 7)); /* of locks: who had it */
	at = idmap_ref(&r->row_of, h, &fresh);
	if (fresh) {
		*at = r->out->n;
		return row_new(r, p, st);
	}
	x = &r->out->rows[*at];
	x->many = x->many || x->pid != (p ? (int64_t)p->pid : 0);
	if (x->many)
		x->pid = 0;
	return x;
}

/* NULL: not known. */
static const struct store_process_row *process_of(const struct reading *r, sqlite3_stmt *st)
{
	return store_dict_process(r->dict, sqlite3_column_int64(st, 0));
}

static void lock_take(struct diskrow *x, sqlite3_stmt *st)
{
	uint64_t longest = (uint64_t)sqlite3_column_int64(st, 5),
		 lasting = (uint64_t)sqlite3_column_int64(st, 9);

	x->longest_us = longest > x->longest_us ? longest : x->longest_us;
	x->lasting_us = lasting > x->lasting_us ? lasting : x->lasting_us;
	if (x->sector != sqlite3_column_int64(st, 8)) /* several processes of one name */
		x->sector = 0;
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, st);
	struct diskrow *x;

	if (p ? !select_wants_process(r->sel, p) : select_is_narrow(r->sel))
		return;
	x = row_of(r, p, st);
	x->n += (uint64_t)sqlite3_column_int64(st, 3);
	x->us += (uint64_t)sqlite3_column_int64(st, 4);
	if (r->what == DISKROWS_LOCKS)
		lock_take(x, st);
	else if (r->what == DISKROWS_CALLS)
		x->bytes += (uint64_t)sqlite3_column_int64(st, 5);
	else
		x->device_us += (uint64_t)sqlite3_column_int64(st, 5);
	x->errors += (uint64_t)sqlite3_column_int64(st, 6);
	if (QUERIES[r->what].times)
		disktimes_take(&x->times, st, COLUMNS);
}

static void take_lasting(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, st);
	uint64_t us = (uint64_t)sqlite3_column_int64(st, 4);
	struct diskrow *x;

	if (p ? !select_wants_process(r->sel, p) : select_is_narrow(r->sel))
		return;
	x = row_of(r, p, st);
	x->lasting_us = us > x->lasting_us ? us : x->lasting_us;
}

/* Rows of files that no call has read are made and dropped. */
static void take_disk(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p = process_of(r, st);

	if (p && select_wants_process(r->sel, p))
		row_of(r, p, st)->disk_bytes += (uint64_t)sqlite3_column_int64(st, 3);
}

static void disk_pass(struct diskrows *o, const struct diskrow *from)
{
	for (size_t i = 0; i < o->n; i++) {
		struct diskrow *x = &o->rows[i];

		if (!strcmp(x->word, "ring_read") && !strcmp(x->text, from->text) &&
		    !strcmp(x->comm, from->comm) && !strcmp(x->container, from->container))
			x->disk_bytes += from->disk_bytes;
	}
}

/* What a disk read of a file that no system call read was for io_uring, or for mapped pages. */
static void rows_keep_called(struct diskrows *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		if (!o->rows[i].n)
			disk_pass(o, &o->rows[i]);
	for (size_t i = 0; i < o->n; i++)
		if (o->rows[i].n)
			o->rows[n++] = o->rows[i];
		else
			row_release(&o->rows[i]);
	o->n = n;
}

/* Past the limits of what is recorded: of no process, path or file. */
static bool is_rest(const struct diskrow *x)
{
	return diskother_is(x->text);
}

static uint64_t weight(const struct diskrow *x)
{
	return x->us > x->lasting_us ? x->us : x->lasting_us;
}

/* What is most in the way comes first, the rest last. */
static int order(const void *a, const void *b)
{
	const struct diskrow *x = a, *y = b;

	if (is_rest(x) != is_rest(y))
		return is_rest(x) ? 1 : -1;
	if (weight(x) != weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return strcmp(x->text, y->text);
}

int diskrows_read(const struct selection *sel, enum diskrows_what what, struct diskrows *out,
		  struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	struct reading r = {.sel = sel, .what = what, .out = out};
	int rc;

	*out = (struct diskrows){0};
	strbuf_addstr(&sql, QUERIES[what].head);
	if (QUERIES[what].times)
		disktimes_columns(&sql);
	strbuf_addstr(&sql, QUERIES[what].tail);
	{
		const struct askrows_part parts[] = {
			{RECORDED, take_run, &out->known, {{NULL}, NULL}},
			{strbuf_str(&sql), take, &r, {{NULL}, NULL}},
			{what == DISKROWS_SYNCS ? LASTING : FROM_DISKS, /* the last */
			 what == DISKROWS_SYNCS ? take_lasting : take_disk,
			 &r,
			 {{NULL}, NULL}},
		};
		bool all = what == DISKROWS_SYNCS || what == DISKROWS_CALLS;

		rc = askrows_each(sel, &r.dict, parts, ARRAY_SIZE(parts) - !all, e);
	}
	if (what == DISKROWS_CALLS)
		rows_keep_called(out);
	idmap_release(&r.row_of);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), order);
	return rc;
}

void diskrows_release(struct diskrows *r)
{
	for (size_t i = 0; i < r->n; i++)
		row_release(&r->rows[i]);
	free(r->rows);
	*r = (struct diskrows){0};
}
