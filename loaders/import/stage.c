/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/import/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"

#define STAGE_PREFIX "importing."
#define OPEN_DIR     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* All files in a folder, and in `writers` within it. Never through a link. */
static void empty_folder(int fd, bool top)
{
	int again = dup(fd);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	const struct dirent *de;

	if (!d) {
		if (again >= 0)
			close(again);
		return;
	}
	rewinddir(d);
	while ((de = readdir(d))) {
		int sub;

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, "..") ||
		    !unlinkat(fd, de->d_name, 0) || !top)
			continue;
		sub = openat(fd, de->d_name, OPEN_DIR);
		if (sub < 0)
			continue;
		empty_folder(sub, false);
		close(sub);
		(void)unlinkat(fd, de->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

/* Of imports that were killed: no process holds their locks. */
static void remove_stale(const char *store)
{
	cleanup_fd int at = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = opendir(store);
	const struct dirent *de;

	while (d && at >= 0 && (de = readdir(d))) {
		cleanup_fd int fd = -1;

		if (strncmp(de->d_name, STAGE_PREFIX, strlen(STAGE_PREFIX)))
			continue;
		fd = openat(at, de->d_name, OPEN_DIR);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		empty_folder(fd, true);
		(void)unlinkat(at, de->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

/* The newest segment says whether this program may add to the store. */
static int check_schema(const char *store, struct err *e)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	size_t n = 0;
	int rc = folder_segments(store, &names, &n);

	if (rc || !n) {
		free(names);
		return rc ? err_set(e, rc, EXIT_STORE, "cannot read the store's folder %s: %s",
				    store, strerror(-rc)) :
			    0;
	}
	rc = snprintf(path, sizeof(path), "%s/%s", store, names[n - 1]) >= (int)sizeof(path);
	free(names);
	return rc ? 0 : migrate_check_file(path, e);
}

static int stage_make(struct stage *s, struct err *e)
{
	cleanup_fd int lock = folder_lock(s->store);
	int rc = lock;

	if (lock < 0)
		return err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
			       "cannot lock the store %s: %s", s->store, strerror(-rc));
	remove_stale(s->store);
	rc = check_schema(s->store, e);
	if (rc)
		return rc;
	if (snprintf(s->dir, sizeof(s->dir), "%s/" STAGE_PREFIX "XXXXXX", s->store) >=
		    (int)sizeof(s->dir) ||
	    !mkdtemp(s->dir)) {
		rc = -errno;
		s->dir[0] = '\0';
		return rc == -ENOSPC ? folder_full(s->store, e) :
				       err_set(e, rc, EXIT_STORE,
					       "cannot make a folder in the store %s: %s", s->store,
					       strerror(-rc));
	}
	s->fd = open(s->dir, OPEN_DIR);
	if (s->fd >= 0 && !flock(s->fd, LOCK_EX | LOCK_NB))
		return 0;
	rc = -errno;
	return err_set(e, rc, EXIT_STORE, "cannot lock %s: %s", s->dir, strerror(-rc));
}

int stage_begin(struct stage *s, const char *store, struct err *e)
{
	struct stat st;
	int rc;

	*s = (struct stage){.store = store, .fd = -1};
	s->made = stat(store, &st) < 0 && errno == ENOENT;
	rc = folder_prepare(store, e);
	if (!rc)
		rc = stage_make(s, e);
	if (rc)
		stage_end(s, true);
	return rc;
}

/* Under a name that sorts last. The folder's lock is held. */
static int move_one(const struct stage *s, const char *name, char to[PATH_MAX], struct err *e)
{
	char from[PATH_MAX];
	int rc;

	if (snprintf(from, sizeof(from), "%s/%s", s->dir, name) >= (int)sizeof(from))
		return err_set(e, -ENAMETOOLONG, EXIT_STORE, "the store's path is too long");
	rc = folder_new_segment(s->store, to, e);
	if (rc) {
		to[0] = '\0';
		return rc;
	}
	if (!rename(from, to))
		return 0;
	rc = -errno;
	return err_set(e, rc, EXIT_STORE, "cannot move %s to %s: %s", from, to, strerror(-rc));
}

int stage_move(struct stage *s, struct err *e)
{
	cleanup_fd int lock = folder_lock(s->store);
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	char(*to)[PATH_MAX] = NULL;
	size_t n = 0, moved = 0;
	int rc = lock < 0 ? lock : folder_segments(s->dir, &names, &n);

	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot lock the store %s: %s", s->store,
			       strerror(-rc));
	to = calloc(n + 1, sizeof(*to));
	if (!to)
		rc = err_set(e, -ENOMEM, EXIT_RUNTIME, "no memory");
	for (; !rc && moved < n; moved++)
		rc = move_one(s, names[moved], to[moved], e);
	for (size_t i = 0; rc && to && i < moved; i++)
		if (*to[i])
			(void)unlink(to[i]);
	free(names);
	free(to);
	return rc;
}

/* Only what folder_prepare and folder_lock made: a folder that holds anything else stays. */
static void remove_store(const char *store)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/writers", store) >= (int)sizeof(path))
		return;
	(void)rmdir(path);
	snprintf(path, sizeof(path), "%s/lock", store);
	(void)unlink(path);
	(void)rmdir(store);
}

void stage_end(struct stage *s, bool failed)
{
	if (s->fd >= 0) {
		empty_folder(s->fd, true);
		close(s->fd);
	}
	if (*s->dir)
		(void)rmdir(s->dir);
	if (failed && s->made)
		remove_store(s->store);
	s->fd = -1;
}
