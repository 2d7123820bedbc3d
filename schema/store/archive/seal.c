/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/archive/seal.h"

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
#include "schema/store/archive/archive.h"
#include "schema/store/archive/background.h"
#include "schema/store/archive/day_files.h"
#include "schema/store/archive/keep_mend.h"
#include "schema/store/archive/minutes.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/files/tally_segments.h"

#define SEALING_FILE "sealing.db"

struct source {
	char path[PATH_MAX];
	struct stat st; /* when it was finished */
};

struct work {
	const struct seal_opts *o;
	struct seal_report *r;
	char (*names)[SEGMENT_NAME_MAX];
	size_t n;
	bool *due, *fine; /* by name: rules 3 and 6 */
	struct tally_segments needed;
	int at; /* the folder */
};

static void tell(const struct work *w, enum seal_step step, const char *name)
{
	if (w->o->each)
		w->o->each(w->o->ctx, step, name);
}

static void path_of(const struct seal_opts *o, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", o->dir, name);
}

/* The space that making an archive takes: the copy, and what VACUUM writes. */
static uint64_t room_of(uint64_t bytes)
{
	return bytes / 4 * 5;
}

/* --- rules 2 and 3 --- */

static void mark_due(struct work *w)
{
	const time_t now = time(NULL);
	uint64_t plain = 0;
	char path[PATH_MAX];
	struct stat st;

	w->due = mem_array(w->n + 1, sizeof(*w->due));
	w->fine = mem_array(w->n + 1, sizeof(*w->fine));
	for (size_t i = w->n; i-- > 0;) {
		path_of(w->o, w->names[i], path);
		if (i + 1 == w->n || stat(path, &st) < 0 || st.st_size < SEAL_LEAST ||
		    tally_segments_has(&w->needed, w->names[i]))
			continue;
		if (folder_is_archived(path)) {
			w->fine[i] = w->o->fine_s &&
				     folder_begun_ns(w->names[i]) / NSEC_PER_SEC <
					     (int64_t)now - w->o->fine_s &&
				     !minutes_are(path);
			continue;
		}
		if (w->o->minutes_alone)
			continue;
		plain += (uint64_t)st.st_size;
		w->due[i] = plain > w->o->plain &&
			    (now - st.st_mtime >= w->o->keep_s || plain / 2 > w->o->plain);
	}
}

static int look(struct work *w, struct err *e)
{
	char path[PATH_MAX];
	int rc = folder_segments(w->o->dir, &w->names, &w->n);

	if (rc) {
		err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
			"cannot read the store's folder %s: %s", w->o->dir, strerror(-rc));
		err_fix(e, rc == -EACCES ? "run it with sudo" :
					   "name the store's folder: --store DIR");
		return rc;
	}
	tally_segments_read(w->o->dir, &w->needed);
	if (w->needed.killed && w->n && w->r) {
		path_of(w->o, w->names[w->n - 1], path);
		tally_segments_settle(w->o->dir, path, &w->needed);
	}
	mark_due(w);
	return 0;
}

static void forget(struct work *w)
{
	free(w->names);
	free(w->due);
	free(w->fine);
	tally_segments_release(&w->needed);
}

void seal_look(const struct seal_opts *o, struct seal_due *out)
{
	struct work w = {.o = o};
	struct err none = {0};
	char path[PATH_MAX];
	struct stat st;

	*out = (struct seal_due){0};
	if (!look(&w, &none))
		for (size_t i = 0; i < w.n; i++) {
			path_of(o, w.names[i], path);
			if ((!w.due[i] && !w.fine[i]) || stat(path, &st) < 0)
				continue;
			out->segments++;
			out->room = room_of((uint64_t)st.st_size) > out->room ?
					    room_of((uint64_t)st.st_size) :
					    out->room;
		}
	forget(&w);
}

/* --- rule 4 --- */

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

	if (readonly_is_wal(path) || has_log(path) || readonly_open(path, &db, &e))
		return false;
	version = migrate_version(db);
	sqlite3_close(db);
	return version == migrate_known();
}

/* Lock held. No writer has it any more: log checkpointed, schema migrated to ours. */
static int finish_segment(const char *path, struct source *s, struct err *e)
{
	struct segment *segment;
	int rc;

	if (!folder_is_archived(path) && !is_at_rest(path)) {
		rc = segment_open(path, &segment, e);
		if (rc)
			return rc;
		segment_leave(segment);
	}
	snprintf(s->path, sizeof(s->path), "%s", path);
	return stat(path, &s->st) < 0 ? -errno : 0;
}

/* Lock held. Is it unchanged, and without a writer? */
static bool is_unchanged(const struct source *s)
{
	struct stat st;

	return stat(s->path, &st) == 0 && st.st_ino == s->st.st_ino &&
	       st.st_size == s->st.st_size && st.st_mtim.tv_sec == s->st.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == s->st.st_mtim.tv_nsec && !has_log(s->path);
}

/* Lock held. It would stop each pass. */
static void set_aside(struct work *w, const char *path)
{
	char aside[PATH_MAX];
	int rc = folder_set_aside(path, aside);

	if (rc)
		log_warn("seal: %s is damaged and cannot be set aside: %s", path, strerror(-rc));
	else
		log_warn("seal: %s is damaged: set aside as %s", path, aside);
	w->r->set_aside += !rc;
	w->r->put_off += rc != 0;
}

/* *may: it is at rest, and there is room. */
static int begin_one(struct work *w, const char *path, struct source *s, bool *may, struct err *e)
{
	cleanup_fd int lock = folder_lock(w->o->dir);
	struct err why = {0};
	int rc;

	if (lock < 0)
		return folder_lock_refuse(w->o->dir, lock, e);
	rc = finish_segment(path, s, &why);
	*may = !rc && !has_log(path) &&
	       (!w->o->room || room_of((uint64_t)s->st.st_size) <= w->o->room);
	if (rc == -EBADMSG)
		set_aside(w, path);
	else if (!*may) {
		w->r->put_off++;
		if (rc && rc != -ENOENT)
			log_warn("seal: %s is left for later: %s", path, why.what);
	}
	return 0;
}

static int take_place(struct work *w, const struct source *s, const char *name, bool minutes,
		      struct err *e)
{
	uint64_t after;
	cleanup_fd int lock = folder_lock(w->o->dir);
	struct stat st;
	int rc = 0;

	if (lock < 0)
		return folder_lock_refuse(w->o->dir, lock, e);
	if (!is_unchanged(s)) {
		w->r->put_off++;
		return 0;
	}
	if (renameat(w->at, SEALING_FILE, w->at, name) < 0)
		rc = -errno;
	if (!rc)
		rc = folder_sync(w->o->dir);
	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot put an archive in place of %s: %s",
			       s->path, strerror(-rc));
	after = stat(s->path, &st) == 0 ? (uint64_t)st.st_size : 0;
	*(minutes ? &w->r->thinned : &w->r->segments) += 1;
	*(minutes ? &w->r->fine_before : &w->r->bytes_before) += (uint64_t)s->st.st_size;
	*(minutes ? &w->r->fine_after : &w->r->bytes_after) += after;
	tell(w, SEAL_STEP_NAMED, name);
	return 0;
}

struct making {
	const char *path, *to;
	bool minutes;
	struct err *e;
};

static int make(void *p)
{
	const struct making *m = p;

	return m->minutes ? minutes_make(m->path, m->to, m->e) : archive_make(m->path, m->to, m->e);
}

/* Rule 5. */
static int leave_damaged(struct work *w, const char *path, struct err *e)
{
	cleanup_fd int lock = folder_lock(w->o->dir);

	*e = (struct err){0};
	if (lock < 0)
		return folder_lock_refuse(w->o->dir, lock, e);
	set_aside(w, path);
	return 0;
}

static int archive_one(struct work *w, const char *name, bool minutes, struct err *e)
{
	char path[PATH_MAX], to[PATH_MAX];
	struct making m = {path, to, minutes, e};
	struct source s;
	bool may = false;
	int rc;

	path_of(w->o, name, path);
	path_of(w->o, SEALING_FILE, to);
	rc = begin_one(w, path, &s, &may, e);
	if (rc || !may)
		return rc;
	tell(w, SEAL_STEP_BEGUN, name);
	rc = w->o->idle ? background_run(make, &m) : make(&m);
	if (rc == -EBADMSG)
		return leave_damaged(w, path, e);
	if (rc)
		return rc;
	tell(w, SEAL_STEP_WRITTEN, name);
	return take_place(w, &s, name, minutes, e);
}

/* One that cannot be summed holds up no other. */
static int minutes_one(struct work *w, const char *name, struct err *e)
{
	int rc = archive_one(w, name, true, e);

	if (rc != -EIO)
		return rc;
	log_warn("seal: %s", e->what);
	*e = (struct err){0};
	w->r->put_off++;
	return 0;
}

/* --- rule 7 --- */

struct days {
	struct work *w;
	bool *unfinished;
};

/* Of the names that are there now. */
static int keep_days(void *p)
{
	const struct days *d = p;
	struct day_files_report r;

	day_files_keep(d->w->o->dir, d->w->at, SEALING_FILE, d->w->names, d->w->n, d->unfinished,
		       d->w->o->fine_s != 0, &r);
	d->w->r->days += r.made;
	d->w->r->days_bytes += r.bytes;
	return 0;
}

static void days(struct work *w)
{
	struct days d = {.w = w};
	char path[PATH_MAX];
	struct stat st;
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) { /* some were set aside */
		path_of(w->o, w->names[i], path);
		if (stat(path, &st) == 0)
			memmove(w->names[n++], w->names[i], SEGMENT_NAME_MAX);
	}
	w->n = n;
	d.unfinished = mem_array(n + 1, sizeof(*d.unfinished));
	for (size_t i = 0; i < n; i++) {
		path_of(w->o, w->names[i], path);
		d.unfinished[i] = !folder_is_archived(path) && stat(path, &st) == 0 &&
				  st.st_size >= SEAL_LEAST;
	}
	if (w->o->idle)
		background_run(keep_days, &d);
	else
		keep_days(&d);
	free(d.unfinished);
}

/* --- rule 1 --- */

/* -EAGAIN: another process holds it. */
static int lock_sealing(const char *dir, int at, struct err *e)
{
	cleanup_fd int fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sealing", dir);
	fd = at < 0 ? at : openat(at, "sealing", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0) {
		int rc = at < 0 ? at : -errno;

		err_set(e, rc, rc == -EACCES || rc == -EPERM ? EXIT_PERMISSION : EXIT_STORE,
			"cannot write %s: %s", path, strerror(-rc));
		err_fix(e, rc == -ENOENT ? "name the store's folder: --store DIR" :
			   rc == -EROFS  ? FOLDER_READ_ONLY_FIX :
					   "run it with sudo");
		return rc;
	}
	folder_own_at(at, fd, "sealing", 0640);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EAGAIN;
	return take_fd(&fd);
}

/* Turns SQLite's memory statistics off: nothing reads them, and counting takes a lock at each
 * allocation. Only a hint: if SQLite is in use already, it goes on counting. */
static void count_no_memory(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int seal_run(const struct seal_opts *o, struct seal_report *out, struct err *e)
{
	struct seal_report r = {0};
	cleanup_fd int at = folder_open(o->dir), mine = lock_sealing(o->dir, at, e);
	struct work w = {.o = o, .r = &r, .at = at};
	int rc;

	if (mine == -EAGAIN) {
		*out = (struct seal_report){.busy = true};
		return 0;
	}
	if (mine < 0)
		return mine;
	count_no_memory();
	rc = keep_mend(o->dir, at, e);
	if (!rc)
		rc = look(&w, e);
	for (size_t i = 0; !rc && i < w.n; i++)
		if (w.due[i])
			rc = archive_one(&w, w.names[i], false, e);
	for (size_t i = 0; !rc && i < w.n; i++)
		if (w.fine[i] && (!o->gain || r.fine_before < r.fine_after + o->gain))
			rc = minutes_one(&w, w.names[i], e);
	if (!rc && !o->minutes_alone)
		days(&w);
	forget(&w);
	(void)unlinkat(at, SEALING_FILE, 0); /* what got no name */
	*out = r;
	return rc;
}
