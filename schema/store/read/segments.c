/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments: which files of a store hold something of a range. Each file is opened once, since to
 * open one means to parse its schema, which takes longer than all that is asked of it here.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/worker.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/segment.h"
#include "schema/store/files/span.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/reading.h"
#include "schema/store/read/span_cache.h"
#include "schema/store/read/unreadable.h"

struct looking {
	const char *dir;
	int64_t from_ns, to_ns;
	size_t keep;  /* how many more may stay open: shared by both threads, atomic */
	bool several; /* stores */
};

/* Where more files are to stay open than a question keeps, each is opened. */
#define KEEP_FEW 8

struct looked {
	struct store_segment_info info;
	int rc;     /* 1: it is of interest, 0: it is not, or negative */
	bool empty; /* it has no tables */
	struct err why;
};

/* Every second file: each of two threads has a part. */
struct part {
	struct looking *l;
	char (*names)[SEGMENT_NAME_MAX];
	size_t first, n_names;
	struct looked *x;                 /* by name */
	const struct reading_span *spans; /* by name: what days say; NULL */
};

#define TS_MOST (1ll << 40) /* seconds since t0: no file of ours has more */

static int cannot_span(const struct store_segment *s, const char *why, struct err *e)
{
	err_set(e, -EBADMSG, EXIT_STORE, "cannot read the store's segment %s: %s", s->path, why);
	err_fix(e, "it is damaged: sqlite3 FILE .recover may save a part");
	return -EBADMSG;
}

/* What its samples, amounts, waits and facts span: 1; 0: it holds none; -EBADMSG: that cannot be
 * read. */
static int segment_span(const struct store_segment *s, struct store_segment_info *info,
			struct err *e)
{
	sqlite3 *db = s->db;
	int64_t first, last;
	int rc = s->archived && span_noted(db, &first, &last) ? SQLITE_OK :
								span_read(db, &first, &last);
	int64_t width = sql_number(db, "SELECT max(bucket_s) FROM run", 1);
	int64_t run_to = sql_number(db, "SELECT max(to_ns) FROM run", 0);

	if (rc != SQLITE_OK)
		return cannot_span(s, sqlite3_errstr(rc), e);
	if (first == INT64_MIN)
		return 0;
	if (first < -TS_MOST || first > TS_MOST || last < first || last > TS_MOST)
		return cannot_span(s, "times out of range", e);
	info->from_ns = (s->t0 + first) * NSEC_PER_SEC;
	info->to_ns = (s->t0 + last + width) * NSEC_PER_SEC;
	if (run_to > info->from_ns && run_to < info->to_ns) /* the last bucket is not over yet */
		info->to_ns = run_to;
	return 1;
}

static bool asks_all(const struct looking *l)
{
	return l->from_ns <= 0 && l->to_ns == INT64_MAX;
}

/* 1: it is wanted; 0: it is not; -EBADMSG. */
static int span_wanted(const struct looking *l, const struct store_segment *s,
		       struct store_segment_info *info, const struct span_cache_file *f,
		       struct err *e)
{
	int rc = segment_span(s, info, e);
	const struct span_cache_span span = {rc ? info->from_ns : 1, rc ? info->to_ns : 0};

	if (rc < 0)
		return rc;
	if (f)
		span_cache_put(f, &span);
	return rc ? info->from_ns < l->to_ns && info->to_ns > l->from_ns : asks_all(l);
}

/* It is known that nothing of it is of interest, without opening it. */
static bool span_elsewhere(const struct looking *l, const struct span_cache_file *f, bool *known)
{
	struct span_cache_span span;

	*known = span_cache_get(f, &span);
	return *known && !asks_all(l) &&
	       (span.from_ns > span.to_ns || span.from_ns >= l->to_ns || span.to_ns <= l->from_ns);
}

static bool may_stay_open(struct looking *l)
{
	size_t left = __atomic_load_n(&l->keep, __ATOMIC_RELAXED);

	while (left && !__atomic_compare_exchange_n(&l->keep, &left, left - 1, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return left;
}

/* When the file was begun, and a number that was drawn for its oldest capture. */
static void identity_read(const struct store_segment *s, int64_t out[2])
{
	out[0] = sql_number(s->db, "SELECT value FROM meta WHERE key = 'created_ns'", 0);
	out[1] = out[0] ? sql_number(s->db, "SELECT token FROM run ORDER BY id LIMIT 1", 0) : 0;
}

/* A day says all that is asked here. */
static bool day_says(const struct looking *l, const char *path, const struct reading_span *span,
		     struct looked *x)
{
	if (!span || !span->to_ns || strlen(path) >= sizeof(x->info.path))
		return false;
	*x = (struct looked){.rc = asks_all(l) ||
				   (span->from_ns < l->to_ns && span->to_ns > l->from_ns)};
	memcpy(x->info.path, path, strlen(path) + 1);
	x->info.bytes = segment_bytes(path);
	x->info.from_ns = span->from_ns;
	x->info.to_ns = span->to_ns;
	x->info.schema = span->schema;
	return true;
}

static void look_at(struct looking *l, const char *path, struct looked *x)
{
	struct store_segment *s = NULL;
	struct span_cache_file f;
	bool fixed = span_cache_of(path, &f), known = false;

	*x = (struct looked){0};
	if (fixed && span_elsewhere(l, &f, &known))
		return;
	if (strlen(path) >= sizeof(x->info.path)) {
		x->rc = err_set(&x->why, -ENAMETOOLONG, EXIT_STORE,
				"the store's path is too long: %s", path);
		return;
	}
	memcpy(x->info.path, path, strlen(path) + 1);
	x->info.bytes = segment_bytes(path);
	x->rc = store_segment_open(path, &s, &x->why);
	if (x->rc) {
		x->empty = x->rc == -ENODATA;
		x->rc = x->empty ? 0 : x->rc;
		return;
	}
	x->info.schema = s->schema;
	snprintf(x->info.host, sizeof(x->info.host), "%s", s->host ? s->host : "");
	if (l->several)
		identity_read(s, x->info.identity);
	x->rc = span_wanted(l, s, &x->info, fixed && !known ? &f : NULL, &x->why);
	if (x->rc > 0 && may_stay_open(l))
		x->info.open = s;
	else
		store_segment_close(s);
}

/* A damaged file costs itself only; a newer one is refused. */
static int take_looked(struct looked *x, struct store_segment_info *info, size_t *n, struct err *e)
{
	if (x->rc == -EPROTO || x->rc == -EACCES) {
		if (e)
			*e = x->why;
		return x->rc;
	}
	if (x->rc < 0)
		log_warn("%s; left out", x->why.what);
	/* these may be there, or not, a moment later */
	if (x->rc < 0 && x->rc != -ENOENT && x->rc != -EAGAIN)
		unreadable_add(x->info.path);
	if (x->rc > 0)
		info[(*n)++] = x->info;
	return 0;
}

static void look_at_part(void *ctx)
{
	struct part *p = ctx;
	char path[PATH_MAX];

	for (size_t i = p->first; i < p->n_names; i += 2) {
		snprintf(path, sizeof(path), "%s/%s", p->l->dir, p->names[i]);
		if (unreadable_has(path))
			continue;
		if (!day_says(p->l, path, p->spans ? &p->spans[i] : NULL, &p->x[i]))
			look_at(p->l, path, &p->x[i]);
	}
}

/* Where nothing can be read, that is no empty store. */
static int all_unreadable(const struct looking *l, char (*names)[SEGMENT_NAME_MAX], size_t n_names,
			  const struct looked *x, struct err *e)
{
	char path[PATH_MAX];

	for (size_t i = n_names; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", l->dir, names[i]);
		if (x[i].rc >= 0 && !x[i].empty && !unreadable_has(path))
			return 0;
	}
	for (size_t i = n_names; i-- > 0;) {
		if (x[i].rc >= 0 || x[i].rc == -ENOENT)
			continue;
		if (e)
			*e = x[i].why;
		return x[i].rc;
	}
	for (size_t i = n_names; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", l->dir, names[i]);
		if (unreadable_has(path)) {
			err_set(e, -ENOTRECOVERABLE, EXIT_STORE,
				"no segment of the store %s can be read", l->dir);
			err_fix(e,
				"move the damaged files elsewhere, or use another folder: --store DIR");
			return -ENOTRECOVERABLE;
		}
	}
	return 0;
}

static int look_at_all(struct looking *l, char (*names)[SEGMENT_NAME_MAX], size_t n_names,
		       struct store_segment_info *info, size_t *n, struct err *e)
{
	cleanup_free struct looked *x = mem_array(n_names, sizeof(*x));
	cleanup_free struct reading_span *spans =
		l->keep < KEEP_FEW && !l->several && !store_names_hosts() ?
			mem_array(n_names, sizeof(*spans)) :
			NULL;
	struct part p[2] = {
		{.l = l, .names = names, .first = 0, .n_names = n_names, .x = x, .spans = spans},
		{.l = l, .names = names, .first = 1, .n_names = n_names, .x = x, .spans = spans},
	};
	struct worker other;
	int rc;

	if (spans)
		reading_day_spans(l->dir, names, n_names, spans);
	if (n_names > 1)
		worker_start(&other, look_at_part, &p[1]);
	look_at_part(&p[0]);
	if (n_names > 1)
		worker_join(&other);
	rc = all_unreadable(l, names, n_names, x, e);
	for (size_t i = 0; i < n_names; i++) {
		if (!rc)
			rc = take_looked(&x[i], info, n, e);
		else
			store_segment_close(x[i].info.open);
	}
	return rc;
}

static void say_strange(const char *dir)
{
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	size_t n = 0;

	if (folder_strange(dir, &names, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (unreadable_has(path))
			continue;
		log_warn("%s is not a regular file; left out", path);
		unreadable_add(path);
	}
}

static int look_at_folder(struct looking *l, struct store_segment_info **info, size_t *n,
			  struct err *e)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	size_t n_names = 0;
	int rc = folder_segments(l->dir, &names, &n_names);

	say_strange(l->dir);
	if (rc || !n_names)
		return store_none(l->dir, rc ? -rc : ENOENT, e);
	*info = mem_array(n_names, sizeof(**info));
	rc = look_at_all(l, names, n_names, *info, n, e);
	free(names);
	return rc;
}

static int look_at_file(struct looking *l, struct store_segment_info **info, size_t *n,
			struct err *e)
{
	struct looked x;

	look_at(l, l->dir, &x);
	if (x.rc < 0) {
		if (e)
			*e = x.why;
		return x.rc;
	}
	*info = mem_array(1, sizeof(**info));
	**info = x.info;
	*n = x.rc > 0;
	return 0;
}

static int one_store(const char *dir, int64_t from_ns, int64_t to_ns, size_t keep, bool several,
		     struct store_segment_info **out, size_t *n, struct err *e)
{
	struct looking l = {
		.dir = dir, .from_ns = from_ns, .to_ns = to_ns, .keep = keep, .several = several};
	struct store_segment_info *info = NULL;
	size_t found = 0;
	struct stat st;
	int rc;

	if (stat(dir, &st) < 0)
		return store_none(dir, errno, e);
	span_cache_load();
	rc = (S_ISDIR(st.st_mode) ? look_at_folder : look_at_file)(&l, &info, &found, e);
	if (rc < 0) {
		store_segments_close(info, found);
		return rc;
	}
	*out = info;
	*n = found;
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct store_segment_info *x = a, *y = b;

	return x->from_ns != y->from_ns ? (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns) :
					  strcmp(x->path, y->path);
}

/* Of several that are named, files and folders, a damaged one costs itself only. */
static int one_of_stores(const char *path, int64_t from_ns, int64_t to_ns,
			 struct store_segment_info **part, size_t *n_part, struct err *e)
{
	int rc;

	*n_part = 0;
	*part = NULL;
	if (unreadable_has(path))
		return 0;
	rc = one_store(path, from_ns, to_ns, 0, true, part, n_part, e);
	if (rc != -EBADMSG && rc != -ENOTRECOVERABLE)
		return rc;
	if (e)
		log_warn("%s; left out", e->what);
	unreadable_add(path);
	if (e)
		*e = (struct err){0};
	return 0;
}

static int by_identity(const void *a, const void *b)
{
	const struct store_segment_info *x = a, *y = b;

	for (int i = 0; i < 2; i++)
		if (x->identity[i] != y->identity[i])
			return x->identity[i] < y->identity[i] ? -1 : 1;
	if (x->to_ns != y->to_ns) /* one that is written may have been copied meanwhile */
		return x->to_ns > y->to_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* A store that was copied, or linked file by file, may be named together with its copy. */
static size_t copies_drop(struct store_segment_info *all, size_t n)
{
	static bool said;
	size_t kept = 0;

	qsort(all, n, sizeof(*all), by_identity);
	for (size_t i = 0; i < n; i++) {
		const struct store_segment_info *last = kept ? &all[kept - 1] : NULL;

		if (!last || !all[i].identity[1] ||
		    memcmp(last->identity, all[i].identity, sizeof(last->identity)) != 0) {
			all[kept++] = all[i];
			continue;
		}
		if (!said)
			log_warn("%s is a copy of %s: it counts once, and so do others",
				 all[i].path, last->path);
		said = true;
	}
	return kept;
}

int store_segments_open(const char *dir, int64_t from_ns, int64_t to_ns, size_t keep,
			struct store_segment_info **out, size_t *n, struct err *e)
{
	struct store_segment_info *all = NULL, *part;
	size_t n_all = 0, n_part;
	int rc = 0;

	if (!strchr(dir, STORE_LIST))
		return one_store(dir, from_ns, to_ns, keep, false, out, n, e);
	for (const char *p = dir; !rc && p;
	     p = strchr(p, STORE_LIST) ? strchr(p, STORE_LIST) + 1 : NULL) {
		cleanup_free char *path =
			mem_strndup(p, strcspn(p, (const char[]){STORE_LIST, '\0'}));

		rc = one_of_stores(path, from_ns, to_ns, &part, &n_part, e);
		if (rc)
			break;
		all = mem_realloc(all, (n_all + n_part + 1) * sizeof(*all));
		if (n_part)
			memcpy(all + n_all, part, n_part * sizeof(*all));
		n_all += n_part;
		free(part);
	}
	if (rc) {
		free(all);
		return rc;
	}
	if (n_all) {
		n_all = copies_drop(all, n_all);
		qsort(all, n_all, sizeof(*all), by_begin);
	}
	*out = all;
	*n = n_all;
	return 0;
}

int store_segments(const char *dir, int64_t from_ns, int64_t to_ns, struct store_segment_info **out,
		   size_t *n, struct err *e)
{
	return store_segments_open(dir, from_ns, to_ns, 0, out, n, e);
}

void store_segments_close(struct store_segment_info *info, size_t n)
{
	for (size_t i = 0; i < n; i++)
		store_segment_close(info[i].open);
	free(info);
}
