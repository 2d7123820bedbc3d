/* SPDX-License-Identifier: Apache-2.0 */
/* state: see the header. */
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

#include "export/source.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define HEAD "sonde-metrics 1\n"
#define FILE_MOST (64 << 20)
#define TS_MOST (1ll << 40)

/* --- text --- */

/* A number and the blank, or the end, behind it. NULL: there is none. */
static char *number(char *p, uint64_t *out)
{
	char *end;

	if (!p || *p < '0' || *p > '9')
		return NULL;
	errno = 0;
	*out = strtoull(p, &end, 10);
	return errno || (*end && *end != ' ') ? NULL : end + (*end == ' ');
}

static bool time_ok(uint64_t v)
{
	return v <= TS_MOST;
}

static bool series_line(struct totals *t, char *p)
{
	size_t len = strcspn(p, " ");
	struct totals_row r = {.labels = ""};
	uint64_t part, ts;
	unsigned ignored;
	int metric = metric_find(p, len, &ignored);

	p = number(p[len] ? p + len + 1 : NULL, &part);
	p = number(p, &ts);
	p = number(p, &r.settled);
	p = number(p, &r.shown);
	if (!p || part > METRIC_SUM || !time_ok(ts))
		return false;
	r.metric = (unsigned)metric;
	r.part = (unsigned)part;
	r.ts = (int64_t)ts;
	r.labels = p;
	if (metric >= 0)
		totals_put(t, &r);
	return true;
}

static bool settled_line(struct totals *t, char *p)
{
	char *name = p, *ts = strchr(p, ' ');
	uint64_t v;
	int source;

	if (!ts)
		return false;
	*ts++ = '\0';
	source = source_find(name);
	if (!number(ts, &v) || !time_ok(v))
		return false;
	if (source >= 0)
		t->settled_ts[source] = (int64_t)v;
	return true;
}

static bool line_take(struct totals *t, char *line)
{
	uint64_t v;

	if (!strncmp(line, "s ", 2))
		return series_line(t, line + 2);
	if (!strncmp(line, "settled ", 8))
		return settled_line(t, line + 8);
	if (!strncmp(line, "begun ", 6) && number(line + 6, &v) && time_ok(v))
		return t->begun_ts = (int64_t)v, true;
	if (!strncmp(line, "missed ", 7) && number(line + 7, &v))
		return t->missed_s = v, true;
	if (!strncmp(line, "folded ", 7) && number(line + 7, &v))
		return t->folded = v, true;
	return false;
}

int state_parse(struct totals *t, const char *text, size_t len)
{
	cleanup_free char *copy = mem_strndup(text, len);
	size_t max_series = t->max_series;
	char *p = copy;
	bool ok = !strncmp(p, HEAD, strlen(HEAD)) && len && text[len - 1] == '\n' && strlen(copy) == len;

	for (p += ok ? strlen(HEAD) : 0; ok && *p;) {
		char *end = strchr(p, '\n');

		*end = '\0';
		ok = line_take(t, p);
		p = end + 1;
	}
	if (ok && t->begun_ts)
		return 0;
	totals_release(t);
	totals_init(t, max_series);
	return -EBADMSG;
}

void state_print(struct totals *t, struct strbuf *out)
{
	size_t n;
	cleanup_free struct totals_row *rows = totals_rows(t, &n);

	strbuf_addf(out, HEAD "begun %" PRId64 "\nmissed %" PRIu64 "\nfolded %" PRIu64 "\n", t->begun_ts, t->missed_s, t->folded);
	for (size_t i = 0; i < source_count(); i++)
		strbuf_addf(out, "settled %s %" PRId64 "\n", source_name(i), t->settled_ts[i]);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(out, "s %s %u %" PRId64 " %" PRIu64 " %" PRIu64 " %s\n", METRICS[rows[i].metric].name, rows[i].part, rows[i].ts,
			    rows[i].settled, rows[i].shown, rows[i].labels);
}

/* --- files --- */

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
	const char *systemd = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
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
		snprintf(path, PATH_MAX, "%s/.local/state/sonde", home && *home == '/' ? home : "/nonexistent");
	rc = make_folders(path);
	if (rc) {
		err_set(e, rc, EXIT_PERMISSION, "cannot make the folder %s, where counters are kept from one time to the next: %s", path, strerror(-rc));
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
		log_warn("%s is damaged: counters begin anew", s->path);
	return 0;
}

int state_open(struct state *s, const char *dir, const char *store, struct totals *t, struct err *e)
{
	char real[PATH_MAX], lock[PATH_MAX + 8];

	s->lock_fd = -1;
	if (!realpath(store, real))
		snprintf(real, sizeof(real), "%s", store);
	if (snprintf(s->path, sizeof(s->path), "%s/metrics-%016" PRIx64, dir, hash_str(HASH_SEED, real)) >= (int)sizeof(s->path))
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
