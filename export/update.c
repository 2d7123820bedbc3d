/* SPDX-License-Identifier: Apache-2.0 */
#include "export/update.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "export/source.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/location.h"

#define BUCKET_S 60  /* the first bucket of a file began before it */
#define LATE_S   300 /* a writer leaves a file with its next batch */

struct file {
	char path[PATH_MAX];
	int64_t begun_ts;
	struct source_segment *open; /* NULL: not needed, or damaged */
};

struct files {
	struct file *items;
	size_t n;
};

/* YYYYMMDDTHHMMSSZ-NNNN.db; 0: any other name. */
static int64_t begun_of(const char *path)
{
	const char *name = strrchr(path, '/');
	struct tm tm = {0};

	name = name ? name + 1 : path;
	return folder_is_segment_name(name) && strptime(name, "%Y%m%dT%H%M%SZ", &tm) ?
		       (int64_t)timegm(&tm) :
		       0;
}

static int files_find(const char *store, struct files *f, struct err *e)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	struct stat st;
	size_t n = 0;
	int rc;

	if (stat(store, &st) < 0)
		return store_none(store, errno, e);
	if (!S_ISDIR(st.st_mode)) {
		f->items = mem_array(1, sizeof(*f->items));
		f->n = 1;
		snprintf(f->items[0].path, PATH_MAX, "%s", store);
		f->items[0].begun_ts = begun_of(store);
		return 0;
	}
	rc = folder_segments(store, &names, &n);
	if (rc || !n)
		return store_none(store, rc ? -rc : ENOENT, e);
	f->items = mem_array(n, sizeof(*f->items));
	for (f->n = 0; f->n < n; f->n++) {
		snprintf(f->items[f->n].path, PATH_MAX, "%s/%s", store, names[f->n]);
		f->items[f->n].begun_ts = begun_of(names[f->n]);
	}
	free(names);
	return 0;
}

static void files_release(struct files *f)
{
	for (size_t i = 0; i < f->n; i++)
		source_close(f->items[i].open);
	free(f->items);
}

static void tell(const struct files *f, struct update_store *about)
{
	static const char *const ends[] = {"", "-wal"};

	*about = (struct update_store){.segments = f->n, .oldest_ts = f->items[0].begun_ts};
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < 2; k++) {
			char path[PATH_MAX + 8];
			struct stat st;

			snprintf(path, sizeof(path), "%s%s", f->items[i].path, ends[k]);
			if (!stat(path, &st))
				about->bytes += (uint64_t)st.st_size;
		}
}

static int64_t oldest_settled(const struct totals *t)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < source_count(); i++)
		if (t->settled_ts[i] < oldest)
			oldest = t->settled_ts[i];
	return oldest;
}

static int64_t newest_settled(const struct totals *t)
{
	int64_t newest = 0;

	for (size_t i = 0; i < source_count(); i++)
		if (t->settled_ts[i] > newest)
			newest = t->settled_ts[i];
	return newest;
}

/* Rules 1 and 4. Those that have nothing to read are behind; the furthest one tells until when all
 * was read. */
static void begin(struct totals *t, const struct files *f)
{
	const struct file *newest = &f->items[f->n - 1];
	int64_t oldest, read_to,
		first = newest->begun_ts > BUCKET_S ? newest->begun_ts - BUCKET_S : 0;

	if (!t->begun_ts)
		t->begun_ts = first ? first : 1;
	for (size_t i = 0; i < source_count(); i++)
		if (!t->settled_ts[i]) /* or it is new in this version */
			t->settled_ts[i] = first;
	read_to = newest_settled(t) + UPDATE_AHEAD_S;
	oldest = f->items[0].begun_ts;
	if (oldest <= read_to)
		return;
	t->missed_s += (uint64_t)(oldest - read_to);
	for (size_t i = 0; i < source_count(); i++)
		if (t->settled_ts[i] < oldest - LATE_S)
			t->settled_ts[i] = oldest - LATE_S;
}

/* Rule 3. A file that was removed meanwhile, or is damaged, costs itself. */
static int files_open(struct files *f, int64_t from_ts, struct err *e)
{
	for (size_t i = 0; i < f->n; i++) {
		struct err why = {0};
		int rc;

		if (i + 1 < f->n && f->items[i + 1].begun_ts + LATE_S < from_ts)
			continue;
		rc = source_open(f->items[i].path, &f->items[i].open, &why);
		if (rc == -EPROTO || rc == -EACCES) {
			*e = why;
			return rc;
		}
		if (rc && rc != -ENODATA && rc != -ENOENT)
			log_warn("%s; skipped", why.what);
	}
	return 0;
}

static int read_all(const struct files *f, size_t source, int64_t from_ts, int64_t to_ts,
		    bool settled, struct totals *t, int64_t *newest, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < f->n; i++)
		if (f->items[i].open)
			rc = source_read(f->items[i].open, source, from_ts, to_ts, settled, t,
					 newest, e);
	return rc;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Rule 2. A bucket of the future, of a clock that was set back, moves nothing. */
static int settle(const struct files *f, struct totals *t, const int64_t *newest, int64_t now_ts,
		  struct err *e)
{
	int64_t newest_of_all = 0, ignored = 0;
	int rc = 0;

	for (size_t i = 0; i < source_count(); i++)
		if (newest[i] > newest_of_all)
			newest_of_all = newest[i];
	for (size_t i = 0; !rc && i < source_count(); i++) {
		int64_t to = least(newest[i], now_ts) - UPDATE_BEHIND_S,
			idle = least(newest_of_all, now_ts) - UPDATE_IDLE_S;

		if (newest[i] < t->settled_ts[i] + UPDATE_AHEAD_S)
			to = t->settled_ts[i];
		if (idle > to)
			to = idle;
		if (to <= t->settled_ts[i])
			continue;
		rc = read_all(f, i, t->settled_ts[i], to, true, t, &ignored, e);
		if (!rc)
			t->settled_ts[i] = to;
	}
	return rc;
}

static int read_sources(const struct files *f, struct totals *t, int64_t now_ts,
			struct update_store *about, struct err *e)
{
	int64_t newest[TOTALS_SOURCES] = {0};
	int rc = 0;

	totals_reopen(t);
	for (size_t i = 0; !rc && i < source_count(); i++) {
		rc = read_all(f, i, t->settled_ts[i], INT64_MAX, false, t, &newest[i], e);
		if (newest[i] > about->newest_ts)
			about->newest_ts = newest[i];
	}
	return rc ? rc : settle(f, t, newest, now_ts, e);
}

int update_totals(struct totals *t, const char *store, int64_t now_ts, struct update_store *about,
		  struct err *e)
{
	struct files f = {0};
	int rc = files_find(store, &f, e);

	if (rc)
		return rc;
	tell(&f, about);
	begin(t, &f);
	rc = files_open(&f, oldest_settled(t), e);
	if (!rc)
		rc = read_sources(&f, t, now_ts, about, e);
	if (!rc)
		totals_close(t, now_ts);
	files_release(&f);
	return rc;
}
