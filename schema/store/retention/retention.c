/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/retention/retention.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/file/subdir.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/ballast.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/files/tally_segments.h"
#include "schema/store/model/sql.h"
#include "schema/store/model/stored.h"

#define DAY_NS         (86400 * NSEC_PER_SEC)
#define IMAGES_SHARE   8 /* of the budget */
#define KEEP_DAYS      2
#define DAY_NAME       8          /* YYYYMMDD, as names of segments begin */
#define COUNTING_NEEDS (1u << 20) /* on the disk: a log's index, and folding a small log in */

struct work {
	const char *dir;
	const struct retention_limits *l;
	bool dry_run;
	struct usage use;                /* as it is, or would be, by now */
	char (*names)[SEGMENT_NAME_MAX]; /* quarantined ones, then segments, oldest first */
	size_t n;
	char newest[SEGMENT_NAME_MAX]; /* of the segments */
	char last_removed[SEGMENT_NAME_MAX];
	int64_t uncovered; /* a window whose files all have to go; 0: none */
	enum removed_why uncovered_why;
	struct tally_segments needed; /* by tallies */
	char kept[DAY_NAME + 1];      /* this day and what follows stays whatever its age */
};

void retention_defaults(const char *dir, struct retention_limits *l)
{
	struct usage u = {0};

	*l = (struct retention_limits){.bytes = 2ull << 30,
				       .reserve_bytes = 512ull << 20,
				       .age_ns = 14 * DAY_NS,
				       .keep_days = KEEP_DAYS};
	if (usage_disk(dir, &u) || !u.disk_bytes)
		return;
	l->bytes = u.disk_bytes / 20 < l->bytes ? u.disk_bytes / 20 : l->bytes;
	l->reserve_bytes =
		u.disk_bytes / 20 < l->reserve_bytes ? u.disk_bytes / 20 : l->reserve_bytes;
}

/* --- what is there --- */

/* The first of the newest `days` days that these names, in order, are of; "" where there are no
 * more, or fewer. Of no days: one that never comes. */
static void first_kept(char (*names)[SEGMENT_NAME_MAX], size_t n, uint32_t days,
		       char out[DAY_NAME + 1])
{
	uint32_t left = days;

	snprintf(out, DAY_NAME + 1, "%s", days ? "" : "99999999");
	for (size_t i = n; i > 0 && left; i--) {
		if (i < n && !strncmp(names[i - 1], names[i], DAY_NAME))
			continue;
		left--;
		snprintf(out, DAY_NAME + 1, "%.*s", DAY_NAME, names[i - 1]);
	}
}

static bool may_age(const char *name, const char *kept)
{
	return strncmp(name, kept, DAY_NAME) < 0;
}

/* Windows that were kept have names before their hour's: they change places. */
static void kept_behind(char (*names)[SEGMENT_NAME_MAX], size_t n)
{
	char hour[SEGMENT_NAME_MAX];

	for (size_t i = 0, kept = 0; i < n; i++) {
		if (folder_is_kept_name(names[i])) {
			kept++;
			continue;
		}
		memcpy(hour, names[i], sizeof(hour));
		memmove(names[i - kept + 1], names[i - kept], kept * sizeof(*names));
		memcpy(names[i - kept], hour, sizeof(hour));
		kept = 0;
	}
}

/* Quarantined files first: they answer nothing. */
static int list_names(struct work *w)
{
	char(*segments)[SEGMENT_NAME_MAX] = NULL;
	size_t n = 0;
	int rc = folder_segments(w->dir, &segments, &n);

	if (!rc)
		rc = folder_aside(w->dir, &w->names, &w->n);
	if (rc) {
		free(segments);
		return rc;
	}
	w->names = mem_realloc(w->names, (w->n + n + 1) * sizeof(*w->names));
	first_kept(segments, n, w->l->keep_days, w->kept);
	if (n)
		memcpy(w->newest, segments[n - 1], sizeof(*segments));
	kept_behind(segments, n);
	for (size_t i = 0; i < n; i++)
		memcpy(w->names[w->n++], segments[i], sizeof(*segments));
	free(segments);
	return 0;
}

static bool is_there(const struct work *w, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	return access(path, F_OK) == 0;
}

static bool is_needed(const struct work *w, const char *name)
{
	return tally_segments_has(&w->needed, name) || !strcmp(name, w->newest);
}

/* --- why --- */

/* By its name alone: could all of it be older than the age? */
static bool may_be_old(const struct retention_limits *l, const char *name)
{
	int64_t at = folder_begun_ns(name);

	return at != INT64_MAX && at < clock_utc_ns() - l->age_ns;
}

/* Of the folder as a whole. */
static enum removed_why breach(const struct retention_limits *l, const struct usage *u)
{
	return u->bytes > l->bytes              ? REMOVED_BUDGET :
	       u->free_bytes < l->reserve_bytes ? REMOVED_RESERVE :
						  REMOVED_NONE;
}

bool retention_is_due(const char *dir, const struct retention_limits *l, const struct usage *u)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	size_t n = 0;
	char kept[DAY_NAME + 1];
	bool old;

	if (breach(l, u) || u->images_bytes > l->bytes / IMAGES_SHARE)
		return true;
	old = folder_segments(dir, &names, &n) == 0 && n > 1 && may_be_old(l, names[0]);
	first_kept(names, n, l->keep_days, kept);
	old = old && may_age(names[0], kept);
	free(names);
	return old;
}

/* --- one removal --- */

static uint64_t blocks_of(const char *dir, const char *name)
{
	static const char *const suffix[] = {"", "-wal", "-shm"};
	char path[PATH_MAX];
	struct stat st;
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix[i]);
		n += stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
	}
	return n;
}

/* Lock held. A log that was not checkpointed may need more rights, or more space, than a reader
 * has. */
static void fold_log(const char *path)
{
	char wal[PATH_MAX + 8];
	struct segment *s;

	snprintf(wal, sizeof(wal), "%s-wal", path);
	if (access(wal, F_OK) == 0 && segment_open(path, &s, NULL) == 0)
		segment_leave(s);
}

/* For a file that cannot be read: its data is older than files that were begun after it. */
static int64_t ended_before(const struct work *w, const char *name)
{
	int64_t at = folder_begun_ns(name), next = clock_utc_ns();

	for (size_t i = 0; i < w->n; i++)
		if (folder_is_segment_name(w->names[i]) && folder_begun_ns(w->names[i]) > at &&
		    folder_begun_ns(w->names[i]) < next)
			next = folder_begun_ns(w->names[i]);
	return next;
}

static bool count(const struct work *w, const char *name, struct removed_one *o, struct segcount *c)
{
	char path[PATH_MAX];
	struct err e = {0};

	*o = (struct removed_one){.at_ns = clock_utc_ns(), .bytes = blocks_of(w->dir, name)};
	memcpy(o->segment, name, SEGMENT_NAME_MAX);
	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	o->to_ns = ended_before(w, name);
	if (folder_is_aside_name(name))
		return false;
	if (!w->dry_run && w->use.free_bytes < COUNTING_NEEDS)
		ballast_drop(w->dir);
	if (!w->dry_run) {
		cleanup_fd int lock = folder_lock(w->dir);

		if (lock >= 0)
			fold_log(path);
	}
	if (segcount_read(path, c, &e)) {
		log_warn("retention: %s; it is removed without being counted", e.what);
		return false;
	}
	o->counted = 1;
	o->from_ns = c->from_ns;
	o->to_ns = c->to_ns;
	for (uint32_t i = 0; i < c->n; i++) {
		o->rows += c->family[i].rows;
		o->events += c->family[i].events;
		o->lost += c->family[i].lost;
	}
	return true;
}

/* The sums of its day are of a file that is no more (archive/day.h). */
static void remove_day(const char *dir, const char *segment)
{
	cleanup_fd int days = subdir_open(dir, "days");
	char name[DAY_NAME + 4];

	snprintf(name, sizeof(name), "%.*s.db", DAY_NAME, segment);
	if (days >= 0)
		(void)unlinkat(days, name, 0);
}

/* 1: removed; 0: it is not to be removed after all; -errno. */
static int remove_one(struct work *w, const struct removed_one *o, const struct segcount *c,
		      struct err *e)
{
	cleanup_fd int lock = -1, fd = -1;
	struct removed_page page;
	int rc;

	if (w->dry_run)
		return 1;
	lock = folder_lock(w->dir);
	if (lock < 0)
		return folder_lock_refuse(w->dir, lock, e);
	tally_segments_read(w->dir, &w->needed);
	if (is_needed(w, o->segment) || !is_there(w, o->segment))
		return 0;
	rc = removed_open(w->dir, &fd, &page, e);
	if (!rc)
		rc = removed_remove(w->dir, fd, &page, o, c, e);
	if (!rc)
		remove_day(w->dir, o->segment);
	return rc ? rc : 1;
}

static enum removed_why why_of(const struct work *w, const char *name, const struct removed_one *o)
{
	enum removed_why why = breach(w->l, &w->use);

	if (why || !may_be_old(w->l, name) || !may_age(name, w->kept))
		return why;
	return o && o->to_ns > clock_utc_ns() - w->l->age_ns ? REMOVED_NONE : REMOVED_AGE;
}

/* ---- kept windows ---- */

/* The segment whose rows it hides, begun a second later than its name says; NULL: it is not there
 * any more. */
static const char *hour_of(const struct work *w, const char *kept)
{
	const int64_t begun = folder_begun_ns(kept) + NSEC_PER_SEC;
	const char *hour = NULL;

	for (size_t i = 0; i < w->n; i++)
		if (folder_begun_ns(w->names[i]) == begun && !folder_is_kept_name(w->names[i]) &&
		    folder_is_segment_name(w->names[i]) && (!hour || strcmp(w->names[i], hour) > 0))
			hour = w->names[i];
	return hour && strcmp(hour, w->last_removed) != 0 && is_there(w, hour) ? hour : NULL;
}

/* All files of a window have its number. 0: it cannot be read. */
static int64_t window_of(const struct work *w, const char *kept)
{
	struct err unsaid = {0};
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	int64_t number = 0;

	snprintf(path, sizeof(path), "%s/%s", w->dir, kept);
	if (!readonly_open(path, &db, &unsaid))
		number = sql_number(db, "SELECT max(recording) FROM run", 0);
	sqlite3_close(db);
	return number;
}

/* What the window hid counts again: its rows in the hour's file are deleted. */
static int uncover(const struct work *w, int64_t number, const char *hour, struct err *e)
{
	cleanup_fd int lock = folder_lock(w->dir);
	char path[PATH_MAX], sql[300];
	struct segment *s;
	int rc;

	if (lock < 0)
		return folder_lock_refuse(w->dir, lock, e);
	snprintf(path, sizeof(path), "%s/%s", w->dir, hour);
	rc = segment_open(path, &s, e);
	if (rc)
		return rc;
	snprintf(
		sql, sizeof(sql),
		"BEGIN IMMEDIATE; DELETE FROM run_period WHERE run IN (SELECT id FROM run WHERE state = %d "
		"AND recording = %lld); DELETE FROM run WHERE state = %d AND recording = %lld; COMMIT",
		STORE_RUN_ELSEWHERE, (long long)number, STORE_RUN_ELSEWHERE, (long long)number);
	rc = sql_exec(s->db, sql);
	if (rc != SQLITE_OK)
		rc = err_set(e, segment_errno(s->db, rc), EXIT_STORE, "cannot write %s: %s", path,
			     sqlite3_errmsg(s->db));
	segment_leave(s);
	return rc;
}

/* Of an hour that is not there any more, or that stays although there is no room. */
static bool may_go_alone(struct work *w, const char *kept)
{
	const char *hour = hour_of(w, kept);
	struct err e = {0};

	if (!hour)
		return true;
	if (!is_needed(w, hour) || !breach(w->l, &w->use))
		return false;
	w->uncovered = window_of(w, kept);
	w->uncovered_why = breach(w->l, &w->use);
	if (!w->dry_run && uncover(w, w->uncovered, hour, &e))
		log_warn("retention: %s; the time of %s is not counted", e.what, kept);
	return true;
}

/* Another file of a window that goes alone: all of it or nothing. */
static bool has_to_go(const struct work *w, const char *name)
{
	return w->uncovered && folder_is_kept_name(name) && window_of(w, name) == w->uncovered;
}

static int consider(struct work *w, const char *name,
		    void (*each)(void *ctx, const struct removed_one *o), void *ctx,
		    struct retention_report *r, struct err *e)
{
	struct segcount c = {0};
	struct removed_one o;
	bool counted, rest;
	int rc;

	if (is_needed(w, name) || !is_there(w, name))
		return 0;
	rest = has_to_go(w, name);
	if (!rest &&
	    (!why_of(w, name, NULL) || (folder_is_kept_name(name) && !may_go_alone(w, name))))
		return 0;
	counted = count(w, name, &o, &c);
	o.why = rest ? w->uncovered_why : why_of(w, name, &o);
	if (!o.why)
		return 0;
	rc = remove_one(w, &o, counted ? &c : NULL, e);
	if (rc <= 0)
		return rc;
	memcpy(w->last_removed, name, SEGMENT_NAME_MAX);
	w->use.bytes -= o.bytes < w->use.bytes ? o.bytes : w->use.bytes;
	w->use.free_bytes += o.bytes;
	w->use.segments -= w->use.segments > 0 && !folder_is_aside_name(name);
	r->removed++;
	r->bytes += o.bytes;
	if (each)
		each(ctx, &o);
	return 0;
}

/* --- all --- */

/* A killed writer's segment is needed until its account is settled; where no writer comes, we do
 * it. */
static void settle_killed(struct work *w)
{
	char path[PATH_MAX];

	tally_segments_read(w->dir, &w->needed);
	if (w->dry_run || !w->needed.killed || !*w->newest)
		return;
	snprintf(path, sizeof(path), "%s/%s", w->dir, w->newest);
	tally_segments_settle(w->dir, path, &w->needed);
}

static uint32_t unmet(const struct retention_limits *l, const struct usage *u)
{
	return (u->bytes > l->bytes ? 1u << REMOVED_BUDGET : 0) |
	       (u->free_bytes < l->reserve_bytes ? 1u << REMOVED_RESERVE : 0);
}

static void trim_images(struct work *w)
{
	uint64_t share = w->l->bytes / IMAGES_SHARE, freed = 0;

	if (w->use.images_bytes > share)
		freed = w->dry_run ? w->use.images_bytes - share : usage_trim_images(w->dir, share);
	w->use.images_bytes -= freed;
	w->use.bytes -= freed < w->use.bytes ? freed : w->use.bytes;
	w->use.free_bytes += freed;
}

int retention_run(const char *dir, const struct retention_limits *l, bool dry_run,
		  void (*each)(void *ctx, const struct removed_one *o), void *ctx,
		  struct retention_report *out, struct err *e)
{
	struct work w = {.dir = dir, .l = l, .dry_run = dry_run};
	struct retention_report r = {0};
	int rc = usage_measure(dir, &w.use);

	if (!rc)
		rc = list_names(&w);
	if (rc) {
		err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
			"cannot look at the store's folder %s: %s", dir, strerror(-rc));
		err_fix(e, rc == -EACCES ? "run it with sudo" :
					   "name the store's folder: --store DIR");
		return rc;
	}
	r.before = w.use;
	settle_killed(&w);
	trim_images(&w);
	for (size_t i = 0; !rc && i < w.n; i++)
		rc = consider(&w, w.names[i], each, ctx, &r, e);
	r.after = w.use;
	if (!rc && !dry_run)
		(void)usage_measure(dir, &r.after); /* what it cannot measure it has reckoned */
	r.unmet = unmet(l, &r.after);
	*out = r;
	free(w.names);
	tally_segments_release(&w.needed);
	return rc;
}
