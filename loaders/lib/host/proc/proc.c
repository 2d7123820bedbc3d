/* SPDX-License-Identifier: Apache-2.0 */
/* Each parser walks its bytes once with a bounded cursor, and checks numbers for overflow. */
#include "loaders/lib/host/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/proc/container.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

struct scan {
	const char *p, *end;
	bool bad;
};

static uint64_t scan_number(struct scan *s, unsigned int base)
{
	uint64_t v = 0;
	bool any = false;

	for (; s->p < s->end; s->p++, any = true) {
		char c = *s->p;
		unsigned int d = c >= '0' && c <= '9' ? (unsigned int)(c - '0') :
				 c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 :
							99;

		if (d >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			s->bad = true;
	}
	if (!any)
		s->bad = true;
	return v;
}

static uint32_t scan_u32(struct scan *s, unsigned int base)
{
	uint64_t v = scan_number(s, base);

	if (v > UINT32_MAX)
		s->bad = true;
	return (uint32_t)v;
}

static void scan_char(struct scan *s, char c)
{
	if (s->p < s->end && *s->p == c)
		s->p++;
	else
		s->bad = true;
}

static void scan_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

/* Skips a blank-separated field; only skipped fields may have a minus sign. */
static void scan_skip_field(struct scan *s)
{
	scan_blanks(s);
	while (s->p < s->end && *s->p != ' ' && *s->p != '\n')
		s->p++;
}

static uint64_t scan_field(struct scan *s)
{
	scan_blanks(s);
	return scan_number(s, 10);
}

/* "PID (COMM) STATE PPID ...": the comm ends at the *last* ')', whatever it holds. */
int proc_parse_stat(const char *data, size_t len, struct proc_stat *out)
{
	struct proc_stat st = {0};
	const char *open = memchr(data, '(', len), *close = memrchr(data, ')', len);
	struct scan s = {.p = data, .end = data + len};
	size_t n;

	if (!open || !close || close < open)
		return -EBADMSG;
	st.pid = scan_u32(&s, 10);
	scan_char(&s, ' ');
	if (s.bad || s.p != open)
		return -EBADMSG;
	n = (size_t)(close - open - 1);
	if (n >= sizeof(st.comm))
		n = sizeof(st.comm) - 1;
	memcpy(st.comm, open + 1, n);
	s.p = close + 1;
	scan_char(&s, ' ');
	st.state = s.p < s.end ? *s.p++ : 0;
	st.ppid = (uint32_t)scan_field(&s);
	for (int field = 5; field <= 8; field++) /* pgrp session tty_nr tpgid */
		scan_skip_field(&s);
	st.flags = (uint32_t)scan_field(&s);
	for (int field = 10; field <= 13; field++) /* minflt cminflt majflt cmajflt */
		scan_skip_field(&s);
	st.utime = scan_field(&s);
	st.stime = scan_field(&s);
	for (int field = 16; field <= 19; field++) /* cutime cstime priority nice */
		scan_skip_field(&s);
	st.n_threads = scan_field(&s);
	scan_skip_field(&s); /* itrealvalue */
	st.start_ticks = scan_field(&s);
	if (s.bad || !st.state)
		return -EBADMSG;
	*out = st;
	return 0;
}

static bool line_is(const char *line, size_t len, const char *key, struct scan *value)
{
	size_t n = strlen(key);

	if (len < n || memcmp(line, key, n))
		return false;
	*value = (struct scan){.p = line + n, .end = line + len};
	return true;
}

static void status_uid(struct scan *v, struct proc_status *st)
{
	scan_blanks(v);
	st->uid = scan_u32(v, 10);
	scan_blanks(v);
	st->euid = scan_u32(v, 10);
}

static void status_nspid(struct scan *v, struct proc_status *st)
{
	for (scan_blanks(v); v->p < v->end && !v->bad; scan_blanks(v)) {
		st->nspid = scan_u32(v, 10);
		st->ns_depth++;
	}
}

/* The Name: line comes first, and the kernel escapes newlines in it, so that no comm can forge a
 * line. */
int proc_parse_status(const char *data, size_t len, struct proc_status *out)
{
	struct proc_status st = {0};
	unsigned int seen = 0;
	bool bad = false;

	for (size_t pos = 0; pos < len;) {
		const char *line = data + pos, *nl = memchr(line, '\n', len - pos);
		size_t n = nl ? (size_t)(nl - line) : len - pos;
		struct scan v = {0};

		pos += n + 1;
		if (line_is(line, n, "Tgid:", &v)) {
			st.tgid = (uint32_t)scan_field(&v);
			seen |= 1;
		} else if (line_is(line, n, "PPid:", &v)) {
			st.ppid = (uint32_t)scan_field(&v);
			seen |= 2;
		} else if (line_is(line, n, "Uid:", &v)) {
			status_uid(&v, &st);
			seen |= 4;
		} else if (line_is(line, n, "NSpid:", &v)) {
			status_nspid(&v, &st);
		}
		bad |= v.bad;
	}
	if (bad || seen != 7)
		return -EBADMSG;
	if (!st.ns_depth)
		st.nspid = st.tgid;
	*out = st;
	return 0;
}

static bool map_parse(const char *line, size_t len, struct proc_map *out)
{
	static const char deleted[] = " (deleted)";
	struct scan s = {.p = line, .end = line + len};
	struct proc_map m = {0};

	m.start = scan_number(&s, 16);
	scan_char(&s, '-');
	m.end = scan_number(&s, 16);
	scan_char(&s, ' ');
	if (s.bad || s.end - s.p < 5 || m.end <= m.start)
		return false;
	m.read = s.p[0] == 'r';
	m.write = s.p[1] == 'w';
	m.exec = s.p[2] == 'x';
	m.shared = s.p[3] == 's';
	s.p += 4;
	scan_char(&s, ' ');
	m.offset = scan_number(&s, 16);
	scan_char(&s, ' ');
	m.major = scan_u32(&s, 16);
	scan_char(&s, ':');
	m.minor = scan_u32(&s, 16);
	scan_char(&s, ' ');
	m.inode = scan_number(&s, 10);
	scan_blanks(&s);
	if (s.bad)
		return false;
	m.path_len = (size_t)(s.end - s.p);
	m.path = m.path_len ? s.p : NULL;
	if (m.path_len > sizeof(deleted) - 1 &&
	    !memcmp(s.end - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1)) {
		m.deleted = true;
		m.path_len -= sizeof(deleted) - 1;
	}
	*out = m;
	return true;
}

bool proc_next_map(const char *data, size_t len, size_t *pos, struct proc_map *out)
{
	while (*pos < len) {
		const char *line = data + *pos, *nl = memchr(line, '\n', len - *pos);
		size_t n = nl ? (size_t)(nl - line) : len - *pos;

		*pos += n + (nl ? 1 : 0);
		if (map_parse(line, n, out))
			return true;
	}
	return false;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

size_t proc_unescape(const char *path, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (path[i] == '\\' && len - i > 3 && path[i + 1] <= '3' && is_octal(path[i + 1]) &&
		    is_octal(path[i + 2]) && is_octal(path[i + 3])) {
			out[n++] = (char)((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 +
					  (path[i + 3] - '0'));
			i += 3;
		} else {
			out[n++] = path[i];
		}
	}
	out[n] = 0;
	return n;
}

static bool list_has(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if (!memcmp(list + i, word, n) && (!i || list[i - 1] == ',') &&
		    (i + n == len || list[i + n] == ','))
			return true;
	return false;
}

/* "ID:CONTROLLERS:PATH"; the path may hold ':' (and, escaped by the kernel, newlines). */
static void cgroup_line(const char *line, size_t len, struct proc_cgroup *cg)
{
	const char *c1 = memchr(line, ':', len), *c2, *path;
	size_t list_len, n;

	if (!c1)
		return;
	c2 = memchr(c1 + 1, ':', len - (size_t)(c1 + 1 - line));
	if (!c2)
		return;
	path = c2 + 1;
	n = len - (size_t)(path - line);
	list_len = (size_t)(c2 - c1 - 1);
	if (!n || path[0] != '/')
		return;
	cg->any = path;
	cg->any_len = n;
#define KEEP(cond, field)            \
	if (cond) {                  \
		cg->field = path;    \
		cg->field##_len = n; \
	}
	KEEP(!list_len && c1 == line + 1 && line[0] == '0', v2)
	KEEP(list_has(c1 + 1, list_len, "memory"), memory)
	KEEP(list_has(c1 + 1, list_len, "pids"), pids)
	KEEP(list_has(c1 + 1, list_len, "cpu"), cpu)
	KEEP(list_has(c1 + 1, list_len, "name=systemd"), systemd)
#undef KEEP
}

int proc_parse_cgroup(const char *data, size_t len, struct proc_cgroup *out)
{
	struct proc_cgroup cg = {0};

	for (size_t pos = 0; pos < len;) {
		const char *line = data + pos, *nl = memchr(line, '\n', len - pos);
		size_t n = nl ? (size_t)(nl - line) : len - pos;

		cgroup_line(line, n, &cg);
		pos += n + 1;
	}
	if (!cg.any)
		return -EBADMSG;
	*out = cg;
	return 0;
}

const char *proc_cgroup_path(const struct proc_cgroup *cg, size_t *len)
{
	const char *const paths[] = {cg->v2, cg->memory, cg->pids, cg->cpu, cg->systemd, "/"};
	const size_t lens[] = {cg->v2_len,  cg->memory_len,  cg->pids_len,
			       cg->cpu_len, cg->systemd_len, 1};
	size_t i = container_choose(paths, lens, ARRAY_SIZE(paths));

	*len = lens[i];
	return paths[i];
}

uint64_t proc_ticks_ns(uint64_t ticks)
{
	static long hz;
	uint64_t per;

	if (!hz)
		hz = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	per = 1000000000ull / (uint64_t)hz;
	return ticks > UINT64_MAX / per ? UINT64_MAX : ticks * per;
}

uint64_t proc_parse_btime(const char *data, size_t len)
{
	static const char key[] = "btime ";
	const char *at = len ? memmem(data, len, "\nbtime ", sizeof(key)) : NULL;
	struct scan s;
	uint64_t v;

	if (!at)
		return 0;
	s = (struct scan){.p = at + sizeof(key), .end = data + len};
	v = scan_number(&s, 10);
	return s.bad ? 0 : v;
}

/* ---- readers ---- */

static int read_all(int fd, size_t max, char **out, size_t *len)
{
	size_t cap = 4096 < max ? 4096 : max, n = 0;
	cleanup_free char *buf = mem_alloc(cap + 1);

	for (;;) {
		ssize_t got;

		if (n == cap) {
			if (cap == max)
				break;
			cap = cap * 2 < max ? cap * 2 : max;
			buf = mem_realloc(buf, cap + 1);
		}
		got = read(fd, buf + n, cap - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		n += (size_t)got;
	}
	buf[n] = 0;
	*len = n;
	*out = take_ptr(buf);
	return 0;
}

int proc_read(uint32_t pid, const char *name, size_t max, char **out, size_t *len)
{
	cleanup_fd int fd = -1;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return read_all(fd, max && max < PROC_FILE_MAX ? max : PROC_FILE_MAX, out, len);
}

uint64_t proc_btime(void)
{
	cleanup_fd int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	cleanup_free char *buf = NULL;
	size_t len;

	return fd >= 0 && !read_all(fd, PROC_FILE_MAX, &buf, &len) ? proc_parse_btime(buf, len) : 0;
}

int proc_read_stat(uint32_t pid, struct proc_stat *out)
{
	cleanup_free char *buf = NULL;
	size_t len;
	int rc = proc_read(pid, "stat", 4096, &buf, &len);

	return rc ? rc : proc_parse_stat(buf, len, out);
}

int proc_read_status(uint32_t pid, struct proc_status *out)
{
	cleanup_free char *buf = NULL;
	size_t len;
	int rc = proc_read(pid, "status", 16384, &buf, &len);

	return rc ? rc : proc_parse_status(buf, len, out);
}

int proc_read_cgroup(uint32_t pid, char *out, size_t size)
{
	cleanup_free char *buf = NULL;
	struct proc_cgroup cg;
	const char *path;
	size_t len, n;
	int rc = proc_read(pid, "cgroup", 65536, &buf, &len);

	if (!rc)
		rc = proc_parse_cgroup(buf, len, &cg);
	if (rc)
		return rc;
	path = proc_cgroup_path(&cg, &n);
	if (n >= size)
		n = size - 1;
	memcpy(out, path, n);
	out[n] = 0;
	return 0;
}

int proc_readlink(uint32_t pid, const char *name, char *out, size_t size)
{
	char path[96];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	n = readlink(path, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = 0;
	return 0;
}
