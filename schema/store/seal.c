/* SPDX-License-Identifier: Apache-2.0 */
/* seal: see the header; the numbers are its steps. */
#include "schema/store/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/archive.h"
#include "schema/store/migrate.h"
#include "schema/store/needed.h"
#include "schema/store/quiet.h"
#include "schema/store/reading.h"
#include "schema/store/sealday.h"
#include "schema/store/sealed.h"
#include "schema/store/segment.h"
#include "schema/store/sound.h"

#define DAY_S 86400
#define MAKES 1000

struct source {
	char path[PATH_MAX];
	struct stat st; /* when it was finished */
};

struct work {
	const struct seal_opts *o;
	struct seal_report *r;
	char (*names)[SEGMENT_NAME_MAX];
	bool *alone; /* by name: archived by itself, or to be */
	size_t n;
	struct sealed_list sealed;
	struct needed needed;
};

static void tell(const struct work *w, enum seal_step step, const char *name)
{
	if (w->o->each)
		w->o->each(w->o->ctx, step, name);
}

static void path_of(const struct work *w, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", w->o->dir, name);
}

/* --- what is there --- */

static int look(struct work *w, struct err *e)
{
	char path[PATH_MAX];
	int rc = folder_segments(w->o->dir, &w->names, &w->n);

	if (rc) {
		err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_STORE, "cannot read the store's folder %s: %s", w->o->dir,
			strerror(-rc));
		err_fix(e, rc == -EACCES ? "run it with sudo" : "name the store's folder: --store DIR");
		return rc;
	}
	sealed_read(w->o->dir, w->names, w->n, &w->sealed);
	needed_read(w->o->dir, &w->needed);
	if (w->needed.killed && w->n && !folder_is_day_name(w->names[w->n - 1])) {
		path_of(w, w->names[w->n - 1], path);
		needed_settle(w->o->dir, path, &w->needed);
	}
	return 0;
}

static void forget(struct work *w)
{
	free(w->names);
	free(w->alone);
	w->names = NULL;
	w->alone = NULL;
	w->n = 0;
	sealed_release(&w->sealed);
	needed_release(&w->needed);
}

static int64_t day_of(const char *name)
{
	struct tm tm = {0};

	if (sscanf(name, "%4d%2d%2dT", &tm.tm_year, &tm.tm_mon, &tm.tm_mday) != 3)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return timegm(&tm);
}

static bool is_finished(const struct work *w, size_t i)
{
	return i + 1 < w->n && !folder_is_day_name(w->names[i]) && !(w->alone && w->alone[i]) && !needed_has(&w->needed, w->names[i]) &&
	       !sealed_by(&w->sealed, w->o->dir, w->names[i]);
}

/* How many finished ones does this day have? */
static size_t finished_of(const struct work *w, int64_t day)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += day_of(w->names[i]) == day && is_finished(w, i);
	return n;
}

static bool is_ripe(const struct work *w, int64_t day)
{
	bool over = clock_utc_ns() / NSEC_PER_SEC >= day + DAY_S;
	size_t n = finished_of(w, day);

	return over ? n > 0 : w->o->today && n >= (w->o->min ? w->o->min : 1);
}

/* The make of the day that no other one lists; "": none. */
static const char *latest_make(const struct work *w, int64_t day)
{
	for (size_t i = w->n; i-- > 0;)
		if (folder_is_day_name(w->names[i]) && day_of(w->names[i]) == day &&
		    !sealed_by(&w->sealed, w->o->dir, w->names[i]))
			return w->names[i];
	return "";
}

static uint64_t least_segment(const struct work *w, int64_t day)
{
	uint64_t least = INT64_MAX;
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < w->n; i++) {
		path_of(w, w->names[i], path);
		if (day_of(w->names[i]) == day && is_finished(w, i) && stat(path, &st) == 0 && (uint64_t)st.st_size < least)
			least = (uint64_t)st.st_size;
	}
	return least;
}

/* "" also where it is too large to be made anew. */
static const char *make_to_go_on(const struct work *w, int64_t day)
{
	const char *latest = latest_make(w, day);

	if (*latest && w->o->room && seal_make_bytes(w->o->dir, latest) + seal_guess(least_segment(w, day)) > w->o->room)
		return "";
	return latest;
}

/* --- step 2 --- */

static bool has_log(const char *path)
{
	char wal[PATH_MAX + 8];
	struct stat st;

	snprintf(wal, sizeof(wal), "%s-wal", path);
	return stat(wal, &st) == 0 && st.st_size > 0;
}

/* As the last writer leaves it, of this schema: then it need not be written. */
static bool is_at_rest(const char *path)
{
	struct err e = {0};
	int version;
	sqlite3 *db;

	if (reading_is_wal(path) || has_log(path) || reading_open(path, &db, &e))
		return false;
	version = migrate_version(db);
	sqlite3_close(db);
	return version == migrate_known();
}

/* Lock held. Nobody writes it any more: its log folded in, of this schema. */
static int finish_segment(const char *path, struct source *s, struct err *e)
{
	struct segment *segment;
	int rc;

	if (!is_at_rest(path)) {
		rc = segment_open(path, &segment, e);
		if (rc)
			return rc;
		segment_leave(segment);
	}
	snprintf(s->path, sizeof(s->path), "%s", path);
	return stat(path, &s->st) < 0 ? -errno : 0;
}

/* Lock held. Still as it was, and nobody writes it? */
static bool is_unchanged(const struct source *s)
{
	struct stat st;

	return stat(s->path, &st) == 0 && st.st_ino == s->st.st_ino && st.st_size == s->st.st_size &&
	       st.st_mtim.tv_sec == s->st.st_mtim.tv_sec && st.st_mtim.tv_nsec == s->st.st_mtim.tv_nsec && !has_log(s->path);
}

/* Lock held. It would stop each pass: what is in it is not in the day, and the others go on without it (rule 7). */
static int set_aside(struct work *w, const char *path)
{
	char aside[PATH_MAX];
	int rc = folder_set_aside(path, aside);

	if (rc)
		log_warn("seal: %s is damaged and cannot be set aside: %s", path, strerror(-rc));
	else
		log_warn("seal: %s is damaged: set aside as %s", path, aside);
	w->r->set_aside += !rc;
	w->r->put_off += rc != 0;
	return rc;
}

/* The day's latest make first, if there is one. A segment that is in use is left out. */
static size_t finish_all(struct work *w, int64_t day, const char *latest, struct source *out, struct err *e)
{
	cleanup_fd int lock = folder_lock(w->o->dir);
	char path[PATH_MAX];
	uint64_t takes = 0;
	size_t n = 0;
	int rc;

	if (lock < 0) {
		err_set(e, lock, lock == -EACCES ? EXIT_PERMISSION : EXIT_STORE, "cannot lock the store %s: %s", w->o->dir,
			strerror(-lock));
		return 0;
	}
	if (*latest) {
		path_of(w, latest, path);
		if (finish_segment(path, &out[n], e))
			return 0;
		takes = seal_make_bytes(w->o->dir, latest);
		n++;
	}
	needed_read(w->o->dir, &w->needed);
	for (size_t i = 0; i < w->n; i++) {
		struct err why = {0};

		if (day_of(w->names[i]) != day || !is_finished(w, i))
			continue;
		path_of(w, w->names[i], path);
		if (access(path, F_OK) < 0) /* set aside */
			continue;
		rc = finish_segment(path, &out[n], &why);
		if (rc == -EBADMSG) {
			set_aside(w, path);
			continue;
		}
		if (rc || has_log(path)) {
			log_warn("seal: %s is left for later%s%s", path, why.what[0] ? ": " : "", why.what);
			w->r->put_off++;
			continue;
		}
		takes += seal_guess((uint64_t)out[n].st.st_size);
		if (w->o->room && takes > w->o->room) {
			w->r->put_off++;
			break;
		}
		n++;
	}
	return n;
}

/* --- steps 3 and 4 --- */

/* The greatest number that a make of the day has had: the latest is the last by name. */
static int last_number(const struct work *w, int64_t day)
{
	int number = 0;

	for (size_t i = 0; i < w->n; i++)
		if (folder_is_day_name(w->names[i]) && day_of(w->names[i]) == day)
			number = atoi(w->names[i] + 18);
	return number;
}

static int next_make(const struct work *w, int64_t day, char out[PATH_MAX], char name[SEGMENT_NAME_MAX])
{
	int number = last_number(w, day);
	time_t at = (time_t)day;
	char stamp[9];
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d", &tm);
	for (int i = 1; i < MAKES; i++) {
		snprintf(name, SEGMENT_NAME_MAX, "%sT000000Z-d%03d.db", stamp, (number + i) % MAKES);
		path_of(w, name, out);
		if (access(out, F_OK) < 0)
			return 0;
	}
	return -EEXIST;
}

static int sync_folder(const char *dir)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int give_name(struct work *w, const struct sealday *d, const struct source *sources, size_t n, struct err *e)
{
	cleanup_fd int lock = folder_lock(w->o->dir);
	char path[PATH_MAX], name[SEGMENT_NAME_MAX];
	struct stat st;
	int rc = lock < 0 ? lock : 0;

	for (size_t i = 0; !rc && i < n; i++) {
		if (is_unchanged(&sources[i]))
			continue;
		log_warn("seal: %s has changed meanwhile: later", sources[i].path);
		w->r->put_off += (uint32_t)n;
		return 0;
	}
	if (!rc)
		rc = next_make(w, d->t0, path, name);
	if (!rc && rename(d->path, path) < 0)
		rc = -errno;
	if (!rc)
		rc = sync_folder(w->o->dir);
	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot name the sealed day in %s: %s", w->o->dir, strerror(-rc));
	w->r->days++;
	w->r->bytes_after += stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	tell(w, SEAL_STEP_NAMED, name);
	return 0;
}

/* What cannot be taken in is put off; a row half taken in is in no file that has a name. */
static int take_sources(struct work *w, struct sealday *d, const struct source *sources, size_t n, size_t *taken, const char **at, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int rc = sealday_take(d, sources[i].path, w->r, e);

		*at = sources[i].path;

		if (rc == -ENOTSUP) {
			log_warn("seal: %s", e->what);
			*e = (struct err){0};
			w->r->put_off++;
			continue;
		}
		if (rc)
			return rc;
		++*taken;
		tell(w, SEAL_STEP_TAKEN, strrchr(sources[i].path, '/') + 1);
	}
	return 0;
}

struct making {
	struct work *w;
	int64_t day;
	const char *latest;
	const struct source *sources;
	size_t n, taken;
	const char *at; /* the file that is being read */
	struct sealday d;
	struct err *e;
};

/* Step 3; nothing that anybody waits for. Nothing is left to be named where nothing was taken. */
static int write_day(void *p)
{
	struct making *m = p;
	size_t before = *m->latest ? 1 : 0;
	int rc;

	m->at = before ? m->sources[0].path : NULL;
	rc = sealday_open(&m->d, m->w->o->dir, m->at, m->day, m->e);
	if (rc)
		return rc;
	m->w->r->bytes_before += before ? (uint64_t)m->sources[0].st.st_size : 0;
	tell(m->w, SEAL_STEP_COPIED, "sealing.db");
	rc = take_sources(m->w, &m->d, m->sources + before, m->n - before, &m->taken, &m->at, m->e);
	if (rc || !m->taken) {
		sealday_drop(&m->d);
		return rc;
	}
	m->at = NULL;
	rc = sealday_finish(&m->d, m->e);
	if (!rc)
		tell(m->w, SEAL_STEP_WRITTEN, "sealing.db");
	return rc;
}

static int make_day(struct making *m)
{
	int rc = m->w->o->idle ? quiet_run(write_day, m) : write_day(m);

	return rc || !m->taken ? rc : give_name(m->w, &m->d, m->sources, m->n, m->e);
}

/* One try, on the day's latest make or with none before it. -EBADMSG: something is damaged; in *bad the segment that is, "": the latest
 * make, or what is in it. */
static int try_day(struct work *w, int64_t day, const char *latest, char bad[PATH_MAX], struct err *e)
{
	struct source *sources = mem_array(w->n + 1, sizeof(*sources));
	struct making m = {.w = w, .day = day, .latest = latest, .sources = sources, .e = e};
	size_t before = *latest ? 1 : 0;
	int rc;

	m.n = finish_all(w, day, latest, sources, e);
	rc = e->code;
	if (!rc && m.n > before)
		rc = make_day(&m);
	*bad = '\0';
	if (rc == -EBADMSG && m.at && (!before || (m.at != sources[0].path && !sound_is(m.at))))
		snprintf(bad, PATH_MAX, "%s", m.at);
	free(sources);
	return rc;
}

/* Rule 7: what is damaged is left out, and the day is begun again; each time there is one file less. */
static int seal_day(struct work *w, int64_t day, struct err *e)
{
	const struct seal_report before = *w->r;
	const char *latest = make_to_go_on(w, day);
	char bad[PATH_MAX];
	int rc;

	while ((rc = try_day(w, day, latest, bad, e)) == -EBADMSG) {
		cleanup_fd int lock = -1;
		uint32_t aside = w->r->set_aside;

		*w->r = before;
		w->r->set_aside = aside;
		if (!*bad && !*latest)
			break;
		if (!*bad) {
			log_warn("seal: %s/%s is damaged (%s): the day goes on in another file", w->o->dir, latest, e->what);
			latest = "";
		} else {
			lock = folder_lock(w->o->dir);
			if (lock < 0 || set_aside(w, bad))
				break;
		}
		*e = (struct err){0};
	}
	return rc;
}

static int seal_days(struct work *w, struct err *e)
{
	int64_t done = INT64_MIN;
	struct err bad = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n; i++) {
		int64_t day = day_of(w->names[i]);

		if (day <= done || !is_ripe(w, day))
			continue;
		done = day;
		rc = seal_day(w, day, e);
		if (rc == -EBADMSG) { /* the other days are not to wait for that one */
			bad = *e;
			*e = (struct err){0};
			rc = 0;
		}
	}
	if (!rc && bad.code)
		*e = bad;
	return rc ? rc : bad.code;
}

/* --- rule 8 --- */

/* Newest first, those that stay rows up to `plain`: all beyond are in `due`. */
static void mark_alone(struct work *w, bool *due)
{
	const int64_t now_s = clock_utc_ns() / NSEC_PER_SEC;
	bool *alone = mem_array(w->n + 1, sizeof(*alone));
	uint64_t plain = 0;
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = w->n; i-- > 0;) {
		if (!is_finished(w, i))
			continue;
		path_of(w, w->names[i], path);
		alone[i] = folder_is_archived(path);
		if (alone[i] || !archive_suits(path) || stat(path, &st) < 0)
			continue;
		alone[i] = true;
		plain += (uint64_t)st.st_size;
		due[i] = plain > w->o->plain && (w->o->today || now_s >= day_of(w->names[i]) + DAY_S);
	}
	w->alone = alone;
}

struct archiving {
	const char *path, *to;
	struct err *e;
};

static int archive_step(void *p)
{
	const struct archiving *a = p;

	return archive_make(a->path, a->to, a->e);
}

/* Lock held. At rest, and there is room for what it becomes beside it? Nothing to do otherwise, but later. */
static bool may_archive(struct work *w, struct source *s, const char *path)
{
	struct err why = {0};
	int rc = finish_segment(path, s, &why);

	if (rc == -EBADMSG)
		set_aside(w, path);
	else if (rc || has_log(path) || (w->o->room && (uint64_t)s->st.st_size / 4 * 5 > w->o->room))
		w->r->put_off++;
	else
		return true;
	return false;
}

static int take_place(struct work *w, const struct source *s, const char *to, struct err *e)
{
	cleanup_fd int lock = folder_lock(w->o->dir);
	struct stat st;
	int rc = lock < 0 ? lock : 0;

	if (!rc && !is_unchanged(s)) {
		w->r->put_off++;
		return 0;
	}
	if (!rc && rename(to, s->path) < 0)
		rc = -errno;
	if (!rc)
		rc = sync_folder(w->o->dir);
	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot put an archive in place of %s: %s", s->path, strerror(-rc));
	w->r->archived++;
	w->r->bytes_before += (uint64_t)s->st.st_size;
	w->r->bytes_after += stat(s->path, &st) == 0 ? (uint64_t)st.st_size : 0;
	tell(w, SEAL_STEP_NAMED, strrchr(s->path, '/') + 1);
	return 0;
}

static int archive_one(struct work *w, const char *name, struct err *e)
{
	char path[PATH_MAX], to[PATH_MAX];
	struct archiving a = {path, to, e};
	struct source s;
	bool may = false;
	int rc;

	path_of(w, name, path);
	path_of(w, "sealing.db", to);
	{
		cleanup_fd int lock = folder_lock(w->o->dir);

		if (lock < 0)
			return err_set(e, lock, lock == -EACCES ? EXIT_PERMISSION : EXIT_STORE, "cannot lock the store %s: %s", w->o->dir, strerror(-lock));
		may = may_archive(w, &s, path);
	}
	if (!may)
		return 0;
	tell(w, SEAL_STEP_COPIED, "sealing.db");
	rc = w->o->idle ? quiet_run(archive_step, &a) : archive_step(&a);
	if (rc == -EBADMSG) {
		cleanup_fd int lock = folder_lock(w->o->dir);

		*e = (struct err){0};
		return lock < 0 ? lock : (set_aside(w, path), 0);
	}
	if (rc)
		return rc;
	tell(w, SEAL_STEP_WRITTEN, "sealing.db");
	return take_place(w, &s, to, e);
}

static int archive_all(struct work *w, struct err *e)
{
	cleanup_free bool *due = mem_array(w->n + 1, sizeof(*due));
	int rc = 0;

	mark_alone(w, due);
	for (size_t i = 0; !rc && i < w->n; i++)
		if (due[i])
			rc = archive_one(w, w->names[i], e);
	return rc;
}

/* --- step 5 --- */

static void remove_one(struct work *w, const char *name)
{
	static const char *const suffix[] = {"", "-wal", "-shm"};
	char path[PATH_MAX], file[PATH_MAX + 8];

	path_of(w, name, path);
	for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
		snprintf(file, sizeof(file), "%s%s", path, suffix[i]);
		if (unlink(file) < 0 && errno != ENOENT)
			log_warn("seal: cannot remove %s: %s", file, strerror(errno));
	}
	w->r->removed++;
	tell(w, SEAL_STEP_REMOVED, name);
}

static bool is_past_grace(const struct work *w, const char *day)
{
	char path[PATH_MAX];
	struct stat st;
	int64_t age;

	path_of(w, day, path);
	if (stat(path, &st) < 0)
		return false;
	age = time(NULL) - st.st_ctim.tv_sec;
	return age >= w->o->grace_s || age < 0;
}

static void remove_sealed(struct work *w)
{
	cleanup_fd int lock = folder_lock(w->o->dir);

	for (size_t i = 0; lock >= 0 && i < w->n; i++) {
		const struct sealed_one *s = sealed_by(&w->sealed, w->o->dir, w->names[i]);

		if (s && !needed_has(&w->needed, w->names[i]) && is_past_grace(w, s->day))
			remove_one(w, w->names[i]);
	}
}

/* --- all --- */

/* The lock of who seals; -EAGAIN: somebody does. */
static int begin(const char *dir, struct err *e)
{
	cleanup_fd int fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sealing", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0) {
		int rc = -errno;

		err_set(e, rc, rc == -EACCES || rc == -EROFS || rc == -EPERM ? EXIT_PERMISSION : EXIT_STORE, "cannot write %s: %s",
			path, strerror(-rc));
		err_fix(e, rc == -ENOENT ? "name the store's folder: --store DIR" : "run it with sudo");
		return rc;
	}
	folder_own(fd, 0640);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EAGAIN;
	return take_fd(&fd);
}

/* Nobody asks SQLite how much memory it has, and to count takes a lock each time that it asks for some. No more than a hint: where
 * SQLite is in use already it goes on counting. */
static void count_no_memory(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int seal_run(const struct seal_opts *o, struct seal_report *out, struct err *e)
{
	struct seal_report r = {0};
	struct work w = {.o = o, .r = &r};
	cleanup_fd int mine = begin(o->dir, e);
	struct err none = {0};
	char path[PATH_MAX];
	int rc = mine < 0 ? mine : 0;

	count_no_memory();
	if (rc == -EAGAIN) {
		*out = (struct seal_report){.busy = true};
		return 0;
	}
	if (!rc)
		rc = look(&w, e);
	if (!rc)
		rc = archive_all(&w, e);
	if (!rc)
		rc = seal_days(&w, e);
	path_of(&w, "sealing.db", path);
	if (mine >= 0)
		(void)unlink(path); /* what got no name */
	forget(&w);
	if (mine >= 0 && !look(&w, rc ? &none : e)) /* whatever came before: it gives room back */
		remove_sealed(&w);
	forget(&w);
	*out = r;
	return rc ? rc : e->code;
}
