/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/disk/diskfull.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/disk/diskfiles.h"
#include "tools/net/netflows.h"
#include "tools/select/askrows.h"

#define LOOK_S 150 /* looks at deleted files are a minute apart, or two where sonde is late */
#define RECORDED(family)                                                  \
	"SELECT max(to_ns) / 1000000000 FROM run WHERE family = '" family \
	"' AND to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 HAVING count(*)"
static const char MOUNTS[] =
	"SELECT mount, ts, size, available, coalesce(inodes, 0), coalesce(inodes_free, 0) FROM filesystem_stats"
	" WHERE ts BETWEEN ?1 AND ?2 AND size > 0 AND available IS NOT NULL AND coalesce(read_only, 0) = 0";
static const char WRITTEN[] =
	"SELECT mount, path, container, max(CASE WHEN ?2 - ?1 <= 3700 THEN hour WHEN ?2 - ?1 <= 21700 THEN hours WHEN ?2 - ?1 <= 86500 THEN day"
	" ELSE week END) FROM fill_stats WHERE ts BETWEEN ?1 AND ?2 AND kind = 'file' GROUP BY mount, path, container";
static const char HELD[] =
	"SELECT coalesce(process_id, 0), file, mount, ino, bytes, holders, ts FROM held_files WHERE ts BETWEEN ?1 AND ?2";

static void take_run(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

/* ---- file systems ---- */

static void take_mount(void *ctx, sqlite3_stmt *st)
{
	struct diskfull *f = ctx;
	const char *name = askrows_text(st, 0);
	int64_t ts = sqlite3_column_int64(st, 1);
	struct diskfull_mount *m = NULL;

	for (size_t i = 0; !m && i < f->n; i++)
		if (!strcmp(f->mounts[i].mount, name))
			m = &f->mounts[i];
	if (!m) {
		mem_grow(f->mounts, f->n, f->cap);
		m = &f->mounts[f->n++];
		*m = (struct diskfull_mount){
			.mount = mem_strdup(name), .first_ts = INT64_MAX, .last_ts = INT64_MIN};
	}
	if (ts < m->first_ts) {
		m->first_ts = ts;
		m->first_left = sqlite3_column_int64(st, 3);
	}
	if (ts < m->last_ts)
		return;
	m->last_ts = ts;
	m->size = sqlite3_column_int64(st, 2);
	m->left = sqlite3_column_int64(st, 3);
	m->inodes = sqlite3_column_int64(st, 4);
	m->inodes_left = sqlite3_column_int64(st, 5);
}

static struct diskfull_mount *mount_of(struct diskfull *f, const char *path)
{
	struct diskfull_mount *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < f->n; i++) {
		const char *point = f->mounts[i].mount;
		size_t len = strcmp(point, "/") ? strlen(point) : 0;

		if (strncmp(path, point, len) || path[len] != '/' || len + 1 <= most)
			continue;
		best = &f->mounts[i];
		most = len + 1;
	}
	return best;
}

static void by_put(struct diskfull_mount *m, const struct diskfull_by *x)
{
	size_t i = m->n_by;

	while (i && m->by[i - 1].bytes < x->bytes)
		i--;
	if (i == DISKFULL_BY)
		return;
	if (m->n_by == DISKFULL_BY) {
		free(m->by[DISKFULL_BY - 1].file);
		free(m->by[DISKFULL_BY - 1].comm);
		free(m->by[DISKFULL_BY - 1].container);
	} else {
		m->n_by++;
	}
	memmove(&m->by[i + 1], &m->by[i], (m->n_by - i - 1) * sizeof(*m->by));
	m->by[i] = (struct diskfull_by){.file = mem_strdup(x->file),
					.comm = mem_strdup(x->comm),
					.container = mem_strdup(x->container),
					.pid = x->pid,
					.bytes = x->bytes,
					.written = x->written};
}

static void take_written(void *ctx, sqlite3_stmt *st)
{
	struct diskfull *f = ctx;
	struct diskfull_by x = {.file = (char *)askrows_text(st, 1),
				.comm = (char *)"",
				.container = (char *)askrows_text(st, 2),
				.bytes = sqlite3_column_int64(st, 3),
				.written = true};

	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->mounts[i].mount, askrows_text(st, 0)) && x.bytes > 0)
			by_put(&f->mounts[i], &x);
}

static bool grew_any(const struct diskfiles *files)
{
	for (size_t i = 0; i < files->n; i++)
		if (files->rows[i].grown_bytes > 0)
			return true;
	return false;
}

static void grown_put(struct diskfull *f, const struct diskfiles *files)
{
	for (size_t i = 0; i < files->n; i++) {
		const struct diskfile *y = &files->rows[i];
		struct diskfull_mount *m = mount_of(f, y->file);
		struct diskfull_by x = {.file = y->file,
					.comm = y->comm,
					.container = y->container,
					.pid = y->pid,
					.bytes = y->grown_bytes};

		if (m && x.bytes > 0)
			by_put(m, &x);
	}
}

static void rate_find(struct diskfull_mount *m)
{
	int64_t took = m->last_ts - m->first_ts, less = m->first_left - m->left;

	m->full_s = took >= DISKFULL_LEAST_S && less > 0 ?
			    (double)m->left * (double)took / (double)less :
			    -1;
}

static int mount_order(const void *a, const void *b)
{
	const struct diskfull_mount *x = a, *y = b;
	double p = (double)x->left / (double)x->size, q = (double)y->left / (double)y->size;

	if ((x->full_s < 0) != (y->full_s < 0))
		return x->full_s < 0 ? 1 : -1;
	if (x->full_s >= 0 && x->full_s != y->full_s)
		return x->full_s < y->full_s ? -1 : 1;
	return p < q ? -1 : p > q ? 1 : strcmp(x->mount, y->mount);
}

void diskfull_release(struct diskfull *f)
{
	for (size_t i = 0; i < f->n; i++) {
		for (size_t k = 0; k < f->mounts[i].n_by; k++) {
			free(f->mounts[i].by[k].file);
			free(f->mounts[i].by[k].comm);
			free(f->mounts[i].by[k].container);
		}
		free(f->mounts[i].mount);
	}
	free(f->mounts);
	*f = (struct diskfull){0};
}

/* ---- deleted files ---- */

struct reading {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	struct diskhelds *out;
	int64_t last_ts; /* of the last look that found something, selected or not */
	int64_t until_s; /* until when it was recorded */
};

static void take_until(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t to = sqlite3_column_int64(st, 0);

	r->out->known = true;
	r->until_s = to > r->until_s ? to : r->until_s;
}

static void held_release(struct diskheld *x)
{
	free(x->file);
	free(x->mount);
	free(x->comm);
	free(x->container);
}

static void take_held(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	struct diskhelds *h = r->out;
	int64_t ts = sqlite3_column_int64(st, 6);

	r->last_ts = ts > r->last_ts ? ts : r->last_ts;
	if (p ? !select_wants_process(r->sel, p) : select_is_narrow(r->sel))
		return;
	mem_grow(h->rows, h->n, h->cap);
	h->rows[h->n++] = (struct diskheld){.file = mem_strdup(askrows_text(st, 1)),
					    .mount = mem_strdup(askrows_text(st, 2)),
					    .comm = mem_strdup(p ? p->comm : ""),
					    .container = mem_strdup(p ? netflows_container(p) : ""),
					    .pid = p ? (int64_t)p->pid : 0,
					    .ino = sqlite3_column_int64(st, 3),
					    .bytes = (uint64_t)sqlite3_column_int64(st, 4),
					    .holders = (uint64_t)sqlite3_column_int64(st, 5),
					    .ts = ts};
}

static int larger(const void *a, const void *b)
{
	const struct diskheld *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->file, y->file);
}

int diskhelds_read(const struct selection *sel, struct diskhelds *out, struct err *e)
{
	struct reading r = {.sel = sel, .out = out};
	size_t n = 0;
	int rc;

	*out = (struct diskhelds){0};
	{
		const struct askrows_part parts[] = {
			{RECORDED("disk"), take_until, &r, {{NULL}, NULL}},
			{HELD, take_held, &r, {{NULL}, NULL}},
		};

		rc = askrows_each(sel, &r.dict, parts, ARRAY_SIZE(parts), e);
	}
	if (r.until_s > sel->to_ns / NSEC_PER_SEC)
		r.until_s = sel->to_ns / NSEC_PER_SEC;
	if (r.last_ts < r.until_s - LOOK_S) /* later looks found nothing */
		r.last_ts = r.until_s;
	for (size_t i = 0; i < out->n; i++) {
		if (out->rows[i].ts < r.last_ts) {
			held_release(&out->rows[i]);
			continue;
		}
		out->bytes += out->rows[i].bytes;
		out->rows[n++] = out->rows[i];
	}
	out->n = n;
	if (n)
		qsort(out->rows, n, sizeof(*out->rows), larger);
	return rc;
}

void diskhelds_release(struct diskhelds *h)
{
	for (size_t i = 0; i < h->n; i++)
		held_release(&h->rows[i]);
	free(h->rows);
	*h = (struct diskhelds){0};
}

/* ---- file systems with what they hold ---- */

static int deleted_read(const struct selection *sel, struct diskfull *f, struct err *e)
{
	struct diskhelds h;
	int rc = diskhelds_read(sel, &h, e);

	for (size_t i = 0; i < h.n; i++)
		for (size_t k = 0; k < f->n; k++)
			if (!strcmp(f->mounts[k].mount, h.rows[i].mount))
				f->mounts[k].deleted += h.rows[i].bytes;
	diskhelds_release(&h);
	return rc;
}

int diskfull_read(const struct selection *sel, struct diskfull *out, struct err *e)
{
	struct diskfiles files;
	int rc;

	*out = (struct diskfull){0};
	rc = diskfiles_read(sel, &files, e);
	if (!rc) {
		const struct askrows_part parts[] = {
			{RECORDED("host"), take_run, &out->known, {{NULL}, NULL}},
			{MOUNTS, take_mount, out, {{NULL}, NULL}},
		};

		rc = askrows_each(sel, NULL, parts, ARRAY_SIZE(parts), e);
	}
	if (!rc && grew_any(&files)) {
		grown_put(out, &files);
	} else if (!rc && !select_is_narrow(sel)) {
		const struct askrows_part written = {WRITTEN, take_written, out, {{NULL}, NULL}};

		rc = askrows_each(sel, NULL, &written, 1, e);
	}
	diskfiles_release(&files);
	rc = rc ? rc : deleted_read(sel, out, e);
	for (size_t i = 0; i < out->n; i++)
		rate_find(&out->mounts[i]);
	if (out->n)
		qsort(out->mounts, out->n, sizeof(*out->mounts), mount_order);
	return rc;
}
