/* SPDX-License-Identifier: Apache-2.0 */
#include "export/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/statetext.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"

#define FILE_MOST (64 << 20)

static int make_folders(char *path)
{
	for (char *p = path + 1;; p++) {
		char was = *p;

		if (was && was != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = was;
		if (!was)
			return 0;
	}
}

int state_folder(const char *given, char path[PATH_MAX], struct err *e)
{
	const char *systemd = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	int rc;

	if (given)
		snprintf(path, PATH_MAX, "%s", given);
	else if (systemd && *systemd)
		snprintf(path, PATH_MAX, "%.*s", (int)strcspn(systemd, ":"), systemd);
	else if (!geteuid())
		snprintf(path, PATH_MAX, "/var/lib/sonde-export");
	else if (xdg && *xdg == '/')
		snprintf(path, PATH_MAX, "%s/sonde", xdg);
	else
		snprintf(path, PATH_MAX, "%s/.local/state/sonde",
			 home && *home == '/' ? home : "/nonexistent");
	rc = make_folders(path);
	if (rc) {
		err_set(e, rc, EXIT_PERMISSION, "cannot create the folder %s for counters: %s",
			path, strerror(-rc));
		err_fix(e, "name another one: --state DIR");
	}
	return rc;
}

static int text_read(int fd, struct strbuf *out)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0 && out->len < FILE_MOST)
		strbuf_add(out, buf, (size_t)n);
	return n < 0 ? -errno : 0;
}

static int state_read(const struct state *s, struct totals *t, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	cleanup_fd int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int rc = fd < 0 ? -errno : text_read(fd, &text);

	if (rc == -ENOENT)
		return 0;
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot read %s: %s", s->path, strerror(-rc));
	if (state_parse(t, strbuf_str(&text), text.len))
		log_warn("%s is damaged: counters start from zero", s->path);
	return 0;
}

int state_open(struct state *s, const char *dir, const char *store, struct totals *t, struct err *e)
{
	char real[PATH_MAX], lock[PATH_MAX + 8];

	s->lock_fd = -1;
	if (!realpath(store, real))
		snprintf(real, sizeof(real), "%s", store);
	if (snprintf(s->path, sizeof(s->path), "%s/metrics-%016" PRIx64, dir,
		     hash_str(HASH_SEED, real)) >= (int)sizeof(s->path))
		return err_set(e, -ENAMETOOLONG, EXIT_USAGE, "the path is too long: %s", dir);
	snprintf(lock, sizeof(lock), "%s.lock", s->path);
	s->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0 || flock(s->lock_fd, LOCK_EX) < 0) {
		err_set(e, -errno, EXIT_PERMISSION, "cannot lock %s: %s", lock, strerror(errno));
		err_fix(e, "name another folder: --state DIR");
		return -EACCES;
	}
	return state_read(s, t, e);
}

int state_save(const struct state *s, struct totals *t, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char new[PATH_MAX + 8];
	cleanup_fd int fd = -1;
	bool ok;

	snprintf(new, sizeof(new), "%s.new", s->path);
	state_print(t, &text);
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ok = fd >= 0;
	for (size_t done = 0; ok && done < text.len;) {
		ssize_t n = write(fd, text.buf + done, text.len - done);

		ok = n > 0;
		done += ok ? (size_t)n : 0;
	}
	if (ok && !fsync(fd) && !rename(new, s->path))
		return 0;
	return err_set(e, -errno, EXIT_RUNTIME, "cannot write %s: %s", new, strerror(errno));
}

void state_close(struct state *s)
{
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->lock_fd = -1;
}
