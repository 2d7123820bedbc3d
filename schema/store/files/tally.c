/* SPDX-License-Identifier: Apache-2.0 */
/* tally: the file of a living writer, and the book-keeping for dead ones. */
#include "schema/store/files/tally.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/file/owner.h"
#include "schema/base/file/subdir.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"

static const char magic[8] = {'s', 'o', 'n', 'd', 'e', 't', 'l', 'y'};

/* --- the living --- */

static int tally_refuse(struct tally *t, const char *dir, int error, struct err *e)
{
	if (t->fd >= 0) {
		(void)unlink(t->path);
		close(t->fd);
		t->fd = -1;
	}
	if (error == ENOSPC || error == EDQUOT)
		return folder_full(dir, e);
	return err_set(e, -error, error == EACCES ? EXIT_PERMISSION : EXIT_STORE,
		       "cannot make %s: %s", t->path, strerror(error));
}

/* Makes and locks the file, and maps it: at `at`, over what is mapped there, unless that is NULL.
 */
static int tally_make(const char *dir, struct tally *t, void *at, struct err *e)
{
	cleanup_fd int dirfd = -1;
	void *map;
	int rc;

	*t = (struct tally){.fd = -1};
	if ((size_t)snprintf(t->path, sizeof(t->path), "%s/writers/%d-%lld.tally", dir,
			     (int)getpid(), (long long)clock_boot_ns()) >= sizeof(t->path))
		return tally_refuse(t, dir, ENAMETOOLONG, e);
	dirfd = subdir_open(dir, "writers");
	if (dirfd < 0)
		return tally_refuse(t, dir, -dirfd, e);
	t->fd = openat(dirfd, strrchr(t->path, '/') + 1,
		       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t->fd < 0)
		return tally_refuse(t, dir, errno, e);
	owner_inherit_at(dirfd, strrchr(t->path, '/') + 1);
	if (flock(t->fd, LOCK_EX | LOCK_NB) < 0)
		return tally_refuse(t, dir, errno, e);
	rc = posix_fallocate(t->fd, 0, TALLY_BYTES);
	if (rc)
		return tally_refuse(t, dir, rc, e);
	if (at && pwrite(t->fd, at, TALLY_BYTES, 0) != TALLY_BYTES)
		return tally_refuse(t, dir, errno ? errno : EIO, e);
	map = mmap(at, TALLY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0),
		   t->fd, 0);
	if (map == MAP_FAILED)
		return tally_refuse(t, dir, errno, e);
	t->data = map;
	return 0;
}

int tally_open(const char *dir, struct tally *t, struct err *e)
{
	int rc = tally_make(dir, t, NULL, e);

	if (rc)
		return rc;
	memcpy(t->data->magic, magic, sizeof(magic));
	t->data->version = 1;
	t->data->pid = (uint32_t)getpid();
	return 0;
}

void tally_moved(struct tally *t, const char *dir)
{
	const char *slash = strrchr(t->path, '/');
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/writers/%.64s", dir,
			     slash ? slash + 1 : t->path) < sizeof(path))
		memcpy(t->path, path, sizeof(path));
}

int tally_again(const char *dir, struct tally *t, struct err *e)
{
	struct tally fresh;
	int rc = tally_make(dir, &fresh, t->data, e);

	if (rc)
		return rc;
	fresh.data->segment[0] = fresh.data->before[0] = fresh.data->booked[0] = '\0';
	close(t->fd);
	*t = fresh;
	return 0;
}

void tally_segment(struct tally *t, const char *segment_path)
{
	const char *name = strrchr(segment_path, '/');

	name = name ? name + 1 : segment_path;
	if (!strcmp(t->data->segment, name))
		return;
	memcpy(t->data->before, t->data->segment, sizeof(t->data->before));
	snprintf(t->data->segment, sizeof(t->data->segment), "%s", name);
}

void tally_settled(struct tally *t)
{
	t->data->before[0] = '\0';
}

static void tally_close(struct tally *t)
{
	if (t->data)
		munmap(t->data, TALLY_BYTES);
	t->data = NULL;
	if (t->fd >= 0)
		close(t->fd); /* the lock goes with it */
	t->fd = -1;
}

void tally_remove(struct tally *t)
{
	if (t->fd >= 0)
		(void)unlink(t->path);
	tally_close(t);
}

void tally_abandon(struct tally *t, const char *reason)
{
	if (t->data)
		snprintf(t->data->reason, sizeof(t->data->reason), "%s", reason);
	tally_close(t);
}

/* --- the dead --- */

static sqlite3_stmt *tally_prepare(struct segment *s, const char *sql)
{
	sqlite3_stmt *st = NULL;

	sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
	return st;
}

/* The run's id and what it accounted for; 0: not in this segment. */
static int64_t tally_find(struct segment *s, uint64_t token, uint64_t *accounted)
{
	sqlite3_stmt *st = tally_prepare(s, "SELECT id, accounted FROM run WHERE token = ?1");
	int64_t id = 0;

	sqlite3_bind_int64(st, 1, (sqlite3_int64)token);
	if (st && sqlite3_step(st) == SQLITE_ROW) {
		id = sqlite3_column_int64(st, 0);
		*accounted = (uint64_t)sqlite3_column_int64(st, 1);
	}
	sqlite3_finalize(st);
	return id;
}

static int tally_run_sql(struct segment *s, const char *sql, int64_t a, int64_t b, int64_t c,
			 const char *text)
{
	sqlite3_stmt *st = tally_prepare(s, sql);
	int rc = SQLITE_ERROR;

	if (st) {
		sqlite3_bind_int64(st, 1, a);
		sqlite3_bind_int64(st, 2, b);
		sqlite3_bind_int64(st, 3, c);
		if (text)
			sqlite3_bind_text(st, 4, text, -1, SQLITE_STATIC);
		rc = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A run killed before its first commit: it has no row yet. */
static int64_t tally_insert_run(struct segment *s, const struct tally_run *r, uint32_t pid)
{
	sqlite3_stmt *st = tally_prepare(
		s, "INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns,"
		   " to_ns, state, pid, accounted) VALUES(?1, ?2, '', ?3, ?4, ?5, ?6, ?7, 2, ?8,"
		   " 0)");
	int64_t id = 0;

	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)r->token);
	sqlite3_bind_text(st, 2, r->family, (int)strnlen(r->family, sizeof(r->family)),
			  SQLITE_STATIC);
	sqlite3_bind_int64(st, 3, r->scope);
	sqlite3_bind_int64(st, 4, r->bucket_s ? r->bucket_s : 1);
	sqlite3_bind_int64(st, 5, r->cpus);
	sqlite3_bind_int64(st, 6, r->from_ns);
	sqlite3_bind_int64(st, 7, r->from_ns); /* none of its data is here */
	sqlite3_bind_int64(st, 8, pid);
	if (sqlite3_step(st) == SQLITE_DONE)
		id = sqlite3_last_insert_rowid(s->db);
	sqlite3_finalize(st);
	if (id &&
	    tally_run_sql(s, "INSERT INTO run_period(run, from_ns, period_ns) VALUES(?1, ?3, ?2)",
			  id, (int64_t)r->period_ns, 0, NULL))
		return 0;
	return id;
}

static uint64_t tally_seen(const struct tally_data *d, const struct tally_run *r)
{
	uint64_t offered = d->offered[r - d->run];

	if (offered)
		offered += d->besides[r - d->run];
	return offered > r->seen ? offered : r->seen;
}

/* In the caller's transaction: the loss, and that it is accounted for. */
static int tally_book_run(struct segment *s, const struct tally_data *d, const struct tally_run *r,
			  int64_t id, uint64_t accounted, uint64_t seen)
{
	int64_t bucket = r->bucket_s ? r->bucket_s : 1;
	int64_t end_s = (r->to_ns > r->from_ns ? r->to_ns - 1 : r->from_ns) / NSEC_PER_SEC;
	int rc = SQLITE_OK;

	if (seen > accounted)
		rc = tally_run_sql(s,
				   "INSERT INTO loss_row(ts, run, reason, n) VALUES(?1, ?2, ?4, ?3)"
				   " ON CONFLICT DO UPDATE SET n = n + excluded.n",
				   end_s / bucket * bucket - s->t0, id, (int64_t)(seen - accounted),
				   d->reason[0] ? d->reason : "killed");
	if (rc == SQLITE_OK)
		rc = tally_run_sql(
			s,
			"UPDATE run SET accounted = max(accounted, ?2),"
			" state = iif(state = 1 AND accounted >= ?2, 1, ?3) WHERE id = ?1",
			id, (int64_t)seen, d->reason[0] ? 1 : 2, NULL);
	return rc;
}

static int tally_book_in(struct segment *s, const struct tally_data *d, const struct tally_run *r,
			 uint64_t accounted)
{
	uint64_t here;
	int64_t id;
	int rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (rc == SQLITE_OK) {
		id = tally_find(s, r->token, &here);
		if (!id)
			id = tally_insert_run(s, r, d->pid);
		rc = id ? tally_book_run(s, d, r, id, accounted, tally_seen(d, r)) : SQLITE_ERROR;
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return segment_errno(s->db, rc);
}

/* A segment named by a tally: `current` itself, or opened (then *opened, to be left), or NULL if it
 * is gone or damaged. An error: it is there, but cannot be asked now. */
static int tally_segment_of(const char *dir, const char name[SEGMENT_NAME_MAX],
			    struct segment *current, struct segment **out, bool *opened)
{
	char path[PATH_MAX];
	int rc;

	*out = NULL;
	*opened = false;
	if (!memchr(name, 0, SEGMENT_NAME_MAX) || !folder_is_segment_name(name))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!strcmp(path, current->path)) {
		*out = current;
		return 0;
	}
	if (access(path, F_OK) < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = segment_open(path, out, NULL);
	*opened = !rc;
	return rc == -EBADMSG ? 0 : rc;
}

/* Rule 5: note where rows will be made for runs that have none. */
static int tally_note_booked(int fd, struct tally_data *d, const struct segment *current)
{
	const char *name = strrchr(current->path, '/');

	snprintf(d->booked, sizeof(d->booked), "%.31s", name ? name + 1 : current->path);
	return pwrite(fd, d->booked, sizeof(d->booked), offsetof(struct tally_data, booked)) ==
			       sizeof(d->booked) ?
		       0 :
		       -EIO;
}

static int tally_book_one(const struct tally_data *d, const struct tally_run *r,
			  struct segment *const seg[3], struct segment *current)
{
	uint64_t accounted = 0, here = 0;
	struct segment *into = NULL;

	for (int k = 0; k < 3; k++) {
		if (!seg[k] || !tally_find(seg[k], r->token, &here))
			continue;
		accounted = here > accounted ? here : accounted;
		into = into ? into : seg[k];
	}
	return tally_book_in(into ? into : current, d, r, accounted);
}

static int tally_book(const char *dir, int fd, struct tally_data *d, struct segment *current)
{
	const char *const names[3] = {d->segment, d->before, d->booked};
	struct segment *seg[3] = {NULL, NULL, NULL};
	bool opened[3] = {false, false, false};
	int rc = 0;

	for (int k = 0; k < 3 && !rc; k++)
		rc = tally_segment_of(dir, names[k], current, &seg[k], &opened[k]);
	if (!rc && !seg[2])
		rc = tally_note_booked(fd, d, current);
	for (int i = 0; i < TALLY_RUNS && !rc; i++)
		if (d->run[i].token)
			rc = tally_book_one(d, &d->run[i], seg, seg[2] ? seg[2] : current);
	for (int k = 0; k < 3; k++)
		if (opened[k])
			segment_leave(seg[k]);
	return rc;
}

/* One tally file: is its writer dead, and was it a tally? Then book it and remove it. */
static void tally_recover_one(const char *dir, int dirfd, const char *name, struct segment *current)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct tally_data d = {0};
	struct stat st;
	int rc;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return; /* it lives */
	if (fstat(fd, &st) < 0 || !st.st_nlink || !S_ISREG(st.st_mode))
		return; /* another process was faster */
	if (pread(fd, &d, sizeof(d), 0) == sizeof(d) && !memcmp(d.magic, magic, sizeof(magic)) &&
	    d.version == 1) {
		d.reason[sizeof(d.reason) - 1] = '\0';
		rc = tally_book(dir, fd, &d, current);
		if (rc) {
			log_warn("store: cannot book yet what a killed writer held: %s",
				 strerror(-rc));
			return;
		}
	}
	(void)unlinkat(dirfd, name, 0);
}

void tally_recover(const char *dir, struct segment *current)
{
	int fd = subdir_open(dir, "writers");
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;
	size_t len;

	while (d && (de = readdir(d))) {
		len = strlen(de->d_name);
		if (len > 6 && !strcmp(de->d_name + len - 6, ".tally"))
			tally_recover_one(dir, dirfd(d), de->d_name, current);
	}
}

/* --- asking --- */

/* What a segment has of these runs; each is in it once. */
static void tally_ask(const char *dir, const char name[SEGMENT_NAME_MAX],
		      const struct tally_data *d, uint64_t accounted[TALLY_RUNS])
{
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;

	if (!memchr(name, 0, SEGMENT_NAME_MAX) || !folder_is_segment_name(name))
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (readonly_open(path, &db, NULL))
		return;
	sqlite3_prepare_v2(db, "SELECT accounted FROM run WHERE token = ?1", -1, &st, NULL);
	for (int i = 0; st && i < TALLY_RUNS; i++) {
		sqlite3_bind_int64(st, 1, (sqlite3_int64)d->run[i].token);
		if (d->run[i].token && sqlite3_step(st) == SQLITE_ROW &&
		    (uint64_t)sqlite3_column_int64(st, 0) > accounted[i])
			accounted[i] = (uint64_t)sqlite3_column_int64(st, 0);
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
}

static int tally_load(int dirfd, const char *name, struct tally_data *d)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	*d = (struct tally_data){0};
	return fd >= 0 && pread(fd, d, sizeof(*d), 0) == sizeof(*d) &&
			       !memcmp(d->magic, magic, sizeof(magic)) && d->version == 1 ?
		       0 :
		       -ENOENT;
}

int tally_missing(const char *dir, pid_t pid, uint64_t *seen, uint64_t *accounted)
{
	uint64_t all = 0, stored = 0, of[TALLY_RUNS] = {0};
	int fd = subdir_open(dir, "writers");
	cleanup_dir DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;
	struct tally_data d;
	char begin[32];

	snprintf(begin, sizeof(begin), "%d-", (int)pid);
	while (folder && (de = readdir(folder)))
		if (!strncmp(de->d_name, begin, strlen(begin)) &&
		    !tally_load(dirfd(folder), de->d_name, &d))
			break;
	if (!folder || !de)
		return -ENOENT;
	tally_ask(dir, d.segment, &d, of);
	tally_ask(dir, d.before, &d, of);
	for (int i = 0; i < TALLY_RUNS; i++) {
		all += d.run[i].token ? tally_seen(&d, &d.run[i]) : 0;
		stored += of[i];
	}
	*seen = all;
	*accounted = stored;
	return 0;
}
