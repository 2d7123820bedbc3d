/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/shedlog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"

#define NAME       "shed"
#define LINE_MOST  128 /* bytes, with its end */
#define SPANS_MOST 1024

static const char *const STATES[SHEDLOG_STATES] = {"full",   "rate", "step",  "cpu",
						   "memory", "hung", "failed"};

/* --- writing --- */

static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t n = 0;
	ssize_t got = 1;

	while (got > 0 && n < size) {
		got = pread(fd, text + n, size - n, (off_t)n);
		n += got > 0 ? (size_t)got : 0;
	}
	return got < 0 ? -errno : (ssize_t)n;
}

/* Keeps the newer half, from the beginning of a line on. */
static int halve(int fd)
{
	cleanup_free char *text = mem_array(2 * SHEDLOG_BYTES, 1);
	ssize_t n = read_all(fd, text, 2 * SHEDLOG_BYTES);
	const char *at;
	size_t left;

	if (n < 0)
		return (int)n;
	at = memchr(text + n / 2, '\n', (size_t)(n - n / 2));
	left = at ? (size_t)(text + n - at) - 1 : 0;
	if (left && pwrite(fd, at + 1, left, 0) != (ssize_t)left)
		return errno ? -errno : -EIO;
	return ftruncate(fd, (off_t)left) < 0 ? -errno : 0;
}

int shedlog_add(const char *dir, int64_t utc_ns, const char *family, enum shedlog_state state,
		uint32_t n, uint32_t of)
{
	const int make = state == SHEDLOG_FULL ? 0 : O_CREAT; /* nothing was ever shed: no file */
	cleanup_fd int at = folder_open(dir), fd = -1;
	char line[LINE_MOST];
	struct stat st;
	int len, rc = 0;

	if (at < 0)
		return at;
	fd = openat(at, NAME, O_RDWR | make | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	if (fd < 0 && !make && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	folder_own_at(at, fd, NAME, 0640);
	if (st.st_size > SHEDLOG_BYTES) {
		fcntl(fd, F_SETFL, O_NONBLOCK); /* pwrite of a file with O_APPEND appends */
		rc = halve(fd);
		fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND);
	}
	if (rc)
		return rc;
	len = snprintf(line, sizeof(line), "%" PRId64 " %.23s %s %" PRIu32 " %" PRIu32 "\n", utc_ns,
		       family, STATES[state], n, of);
	return write(fd, line, (size_t)len) == len ? 0 : errno ? -errno : -EIO;
}

/* --- reading --- */

struct parse {
	int64_t from_ns, to_ns;
	struct shedlog_span *v;
	size_t n, cap;
};

static bool is_word(const char *s)
{
	return s[0] && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-")];
}

/* *family is "*" for all. false: not a line that is known. */
static bool line_read(const char *line, struct shedlog_span *out)
{
	char state[16];
	int state_n = 0, end = 0;

	*out = (struct shedlog_span){.to_ns = INT64_MAX};
	if (sscanf(line, "%" SCNd64 " %23s %15s %9" SCNu32 " %9" SCNu32 "%n", &out->from_ns,
		   out->family, state, &out->n, &out->of, &end) != 5 ||
	    line[end])
		return false;
	while (state_n < SHEDLOG_STATES && strcmp(STATES[state_n], state))
		state_n++;
	out->state = (enum shedlog_state)state_n;
	return state_n < SHEDLOG_STATES && (!strcmp(out->family, "*") || is_word(out->family)) &&
	       (out->state != SHEDLOG_RATE || (out->n && out->n < out->of)) &&
	       (out->state != SHEDLOG_STEP || (out->n && out->n <= out->of));
}

/* What held until now of the line's families ends. One that ends before the range is dropped. */
static void spans_end(struct parse *p, const struct shedlog_span *line)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct shedlog_span *s = &p->v[i];

		if (s->to_ns == INT64_MAX &&
		    (line->family[0] == '*' || !strcmp(s->family, line->family)))
			s->to_ns = line->from_ns;
		if (s->to_ns > p->from_ns && s->to_ns > s->from_ns)
			p->v[kept++] = *s;
	}
	p->n = kept;
}

static void line_take(struct parse *p, const char *line)
{
	struct shedlog_span s;

	if (!line_read(line, &s))
		return;
	spans_end(p, &s);
	if (s.state == SHEDLOG_FULL || s.family[0] == '*' || s.from_ns >= p->to_ns ||
	    p->n == SPANS_MOST)
		return;
	mem_grow(p->v, p->n, p->cap);
	p->v[p->n++] = s;
}

void shedlog_parse(const char *text, size_t len, int64_t from_ns, int64_t to_ns,
		   struct shedlog_span **out, size_t *n)
{
	struct parse p = {.from_ns = from_ns, .to_ns = to_ns};
	const char *end = text + len, *nl;
	char line[LINE_MOST];

	for (; text < end && (nl = memchr(text, '\n', (size_t)(end - text))); text = nl + 1) {
		size_t bytes = (size_t)(nl - text);

		if (bytes >= sizeof(line) || memchr(text, '\0', bytes))
			continue;
		memcpy(line, text, bytes);
		line[bytes] = '\0';
		line_take(&p, line);
	}
	*out = p.v;
	*n = p.n;
}

void shedlog_read(const char *dir, int64_t from_ns, int64_t to_ns, struct shedlog_span **out,
		  size_t *n)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX];
	cleanup_fd int fd = -1;
	struct stat st;
	ssize_t len;

	*out = NULL;
	*n = 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, NAME) >= sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	text = mem_array(2 * SHEDLOG_BYTES, 1);
	len = read_all(fd, text, 2 * SHEDLOG_BYTES);
	if (len > 0)
		shedlog_parse(text, (size_t)len, from_ns, to_ns, out, n);
}
