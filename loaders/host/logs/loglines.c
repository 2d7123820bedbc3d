/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/logs/loglines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/host/logs/dockerfiles.h"
#include "loaders/host/logs/journallines.h"
#include "loaders/lib/host/proc/containerlog.h"
#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/proc/engines.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define KEPT_NS    (30 * NSEC_PER_SEC) /* after it was met last */
#define MINUTE_NS  (60 * NSEC_PER_SEC)
#define PATH_BYTES 1024

struct loglines_held {
	int fd;
	enum containerlog_form form;
	int64_t met_ns;
	char path[PATH_BYTES];
	UT_hash_handle hh;
	char id[];
};

static void let_go(struct loglines *l, struct loglines_held *h)
{
	HASH_DEL(l->held, h);
	close(h->fd);
	free(h);
}

void loglines_release(struct loglines *l)
{
	struct loglines_held *h, *next;

	HASH_ITER (hh, l->held, h, next)
		let_go(l, h);
}

void loglines_round(struct loglines *l, int64_t now_ns)
{
	struct loglines_held *h, *next;

	HASH_ITER (hh, l->held, h, next)
		if (now_ns - h->met_ns > KEPT_NS)
			let_go(l, h);
}

/* ---- where it is ---- */

static int log_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int docker_open(const struct dockerfiles *docker, const char *id, char path[PATH_BYTES])
{
	const char *where = dockerfiles_folder(docker, id);

	if (where)
		snprintf(path, PATH_BYTES, "%.700s/%.64s/%.64s-json.log", where, id, id);
	else
		snprintf(path, PATH_BYTES, "%.700s/containers/%.64s/%.64s-json.log",
			 containernames_docker_root(), id, id);
	return log_open(path);
}

static int podman_open(const char *id, char path[PATH_BYTES])
{
	static const char *const usual[] = {"/var/lib/containers/storage/overlay-containers",
					    "/var/lib/containers/storage/vfs-containers"};
	struct engine all[ENGINES_MAX];
	size_t n = engines_known(all);
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(usual); i++) {
		snprintf(path, PATH_BYTES, "%s/%.64s/userdata/ctr.log", usual[i], id);
		fd = log_open(path);
	}
	for (size_t i = 0; fd < 0 && i < n; i++) {
		if (all[i].kind != ENGINE_STORAGE || all[i].uid)
			continue;
		snprintf(path, PATH_BYTES, "/proc/%u/root%.512s/%.64s/userdata/ctr.log", all[i].pid,
			 all[i].folder, id);
		fd = log_open(path);
	}
	return fd;
}

/* -1: not known, or not in a file. */
static int any_open(const struct dockerfiles *docker, const struct container_ref *ref,
		    enum containerlog_form *form, char path[PATH_BYTES])
{
	if (!*ref->id || strspn(ref->id, "0123456789abcdef") != 64 || ref->id[64])
		return -1;
	*form = strcmp(ref->runtime, "podman") ? CONTAINERLOG_DOCKER : CONTAINERLOG_CRI;
	return *form == CONTAINERLOG_CRI ? podman_open(ref->id, path) :
					   docker_open(docker, ref->id, path);
}

void loglines_meet(struct loglines *l, const struct dockerfiles *docker,
		   const struct container_ref *ref, int64_t now_ns)
{
	enum containerlog_form form;
	struct loglines_held *h;
	char path[PATH_BYTES];
	size_t len = strlen(ref->id);
	int fd;

	if (!l->on || !len)
		return;
	HASH_FIND(hh, l->held, ref->id, len, h);
	if (h) {
		h->met_ns = now_ns;
		return;
	}
	fd = HASH_COUNT(l->held) < LOGLINES_HELD ? any_open(docker, ref, &form, path) : -1;
	if (fd < 0)
		return;
	h = mem_alloc(sizeof(*h) + len + 1);
	h->fd = fd;
	h->form = form;
	h->met_ns = now_ns;
	memcpy(h->path, path, sizeof(path));
	memcpy(h->id, ref->id, len + 1);
	HASH_ADD(hh, l->held, id, len, h);
}

/* ---- reading ---- */

/* The end of a file. */
static void tail_read(struct containerlog *log, enum containerlog_form form, int fd,
		      int64_t until_ns)
{
	cleanup_free char *text = mem_alloc(CONTAINERLOG_TAIL);
	struct stat st;
	off_t from;
	size_t len = 0;
	ssize_t n;

	if (fstat(fd, &st))
		return;
	from = st.st_size > (off_t)CONTAINERLOG_TAIL ? st.st_size - (off_t)CONTAINERLOG_TAIL : 0;
	while (len < CONTAINERLOG_TAIL &&
	       (n = pread(fd, text + len, CONTAINERLOG_TAIL - len, from + (off_t)len)) > 0)
		len += (size_t)n;
	containerlog_read(log, form, text, len, from == 0, until_ns);
}

/* Rotated files hold the lines before it; compressed ones are not read. */
static void file_read(struct containerlog *log, enum containerlog_form form, const char *path,
		      int64_t until_ns)
{
	cleanup_fd int fd = log_open(path);
	char older[PATH_BYTES + 8];
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size < (off_t)CONTAINERLOG_TAIL) {
		cleanup_fd int before =
			(snprintf(older, sizeof(older), "%s.1", path), log_open(older));

		if (before >= 0)
			tail_read(log, form, before, until_ns);
	}
	if (fd >= 0)
		tail_read(log, form, fd, until_ns);
}

/* A container without its own log. */
static void journal_read(struct containerlog *log, const struct container_ref *ref,
			 int64_t until_ns)
{
	if (!container_named_by_path(ref) && *ref->id)
		journallines_read(log, ref, until_ns);
}

static bool may_read(struct loglines *l, int64_t now_ns)
{
	if (now_ns - l->minute_ns >= MINUTE_NS) {
		l->minute_ns = now_ns;
		l->reads = 0;
	}
	return l->reads++ < LOGLINES_READS;
}

void loglines_read(struct loglines *l, const struct dockerfiles *docker,
		   const struct container_ref *ref, int64_t until_ns, int64_t now_ns,
		   void (*line)(void *ctx, const char *line, bool cut), void *ctx)
{
	struct containerlog log = {0};
	struct loglines_held *h;

	if (!l->on || !may_read(l, now_ns))
		return;
	loglines_meet(l, docker, ref, now_ns);
	HASH_FIND_STR(l->held, ref->id, h);
	if (!h)
		journal_read(&log, ref, until_ns);
	else if (!access(h->path, F_OK))
		file_read(&log, h->form, h->path, until_ns);
	else
		tail_read(&log, h->form, h->fd, until_ns); /* it was removed with its container */
	containerlog_each(&log, line, ctx);
	containerlog_release(&log);
}
