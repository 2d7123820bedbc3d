/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/sourcefile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define TAB 8

struct sourcefile {
	char *path, *text;
	size_t len;
	size_t *starts; /* of each line, and one behind the last */
	size_t n_lines, cap;
	int64_t mtime_ns;
};

/* --- where --- */

/* The path without "." and "..": "/a/./b/../c" gives "/a/c". */
static void normal_path(const char *path, struct strbuf *out)
{
	if (*path == '/')
		strbuf_addch(out, '/');
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (out->len && out->buf[--out->len] != '/')
				;
			if (out->buf && !out->len && out->buf[0] == '/')
				out->len = 1;
			if (out->buf)
				out->buf[out->len] = '\0';
		} else if (n && !(n == 1 && *path == '.')) {
			if (out->len && out->buf[out->len - 1] != '/')
				strbuf_addch(out, '/');
			strbuf_add(out, path, n);
		}
		path += n + (path[n] == '/');
	}
}

static bool replaced(const char *path, const char *rule, struct strbuf *out)
{
	const char *eq = strchr(rule, '=');
	size_t n = (size_t)(eq - rule);

	while (n > 1 && rule[n - 1] == '/')
		n--;
	if (strncmp(path, rule, n) || (path[n] && path[n] != '/' && rule[n - 1] != '/'))
		return false;
	strbuf_addf(out, "%s/%s", eq + 1, path + n + strspn(path + n, "/"));
	return true;
}

/* The n-th shorter end of the path below a folder. */
static bool below(const char *path, const char *dir, size_t n, struct strbuf *out)
{
	path += strspn(path, "/");
	while (n-- && path) {
		path = strchr(path, '/');
		path = path ? path + 1 : NULL;
	}
	if (path && *path)
		strbuf_addf(out, "%s/%s", dir, path);
	return path && *path;
}

static size_t ends_of(const char *path)
{
	size_t n = 1;

	for (path += strspn(path, "/"); (path = strchr(path, '/')); path++)
		n++;
	return n;
}

bool sourcefile_candidate(const char *recorded, const struct option_list *dirs, size_t i,
			  struct strbuf *out)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	size_t ends;

	normal_path(recorded, &path);
	strbuf_reset(out);
	if (!path.len)
		return false;
	ends = ends_of(strbuf_str(&path));
	for (size_t k = 0; k < dirs->n; k++)
		if (strchr(dirs->items[k], '=') && dirs->items[k][0] != '=' &&
		    replaced(path.buf, dirs->items[k], out)) {
			if (!i--)
				return true;
			strbuf_reset(out);
		}
	for (size_t k = 0; k < dirs->n; k++) {
		if (strchr(dirs->items[k], '='))
			continue;
		if (i < ends)
			return below(path.buf, dirs->items[k], i, out);
		i -= ends;
	}
	if (!i && path.buf[0] == '/')
		strbuf_add(out, path.buf, path.len);
	return out->len != 0;
}

/* --- reading --- */

static void lines_find(struct sourcefile *s)
{
	size_t at = 0;

	for (;;) {
		const char *end = at < s->len ? memchr(s->text + at, '\n', s->len - at) : NULL;

		mem_grow(s->starts, s->n_lines, s->cap);
		s->starts[s->n_lines] = at;
		if (at >= s->len)
			return;
		s->n_lines++;
		at = end ? (size_t)(end - s->text) + 1 : s->len;
	}
}

static int text_read(int fd, size_t size, struct sourcefile *s)
{
	s->text = mem_alloc(size + 1);
	while (s->len < size) {
		ssize_t n = read(fd, s->text + s->len, size - s->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		s->len += (size_t)n;
	}
	return 0;
}

static const char *why_not(const struct sourcereader *r, const char *below, int error, char *buf,
			   size_t size)
{
	if (error == ENODEV)
		return "not a regular file";
	if (error == EFBIG)
		return "too large";
	if (error == EXDEV)
		return "a link leads out of the folder";
	if ((error != EACCES && error != EPERM) || !r->limited || below)
		return strerror(error);
	snprintf(buf, size, "it is read with the rights of %.150s, which do not suffice", r->who);
	return buf;
}

/* The folder of `dirs` that the path was made of, NULL: none. */
static const char *folder_of(const char *path, const struct option_list *dirs)
{
	for (size_t k = 0; k < dirs->n; k++) {
		const char *eq = strchr(dirs->items[k], '='), *dir = eq ? eq + 1 : dirs->items[k];
		size_t n = strlen(dir);

		if (n && !strncmp(path, dir, n) && path[n] == '/')
			return dir;
	}
	return NULL;
}

static struct sourcefile *file_open(const char *path, const struct option_list *dirs,
				    const struct sourcereader *r, const char **why)
{
	static char said[256];
	const char *below = folder_of(path, dirs);
	struct sourcefile *s;
	struct stat st;
	cleanup_fd int fd = sourcereader_open(r, path, below, SOURCEFILE_MAX, &st);
	int rc;

	if (fd < 0) {
		*why = why_not(r, below, -fd, said, sizeof(said));
		return NULL;
	}
	s = mem_alloc(sizeof(*s));
	s->path = mem_strdup(path);
	s->mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	rc = text_read(fd, (size_t)st.st_size, s);
	if (rc) {
		*why = strerror(-rc);
		sourcefile_close(s);
		return NULL;
	}
	lines_find(s);
	return s;
}

struct sourcefile *sourcefile_open(const char *path, const struct option_list *dirs,
				   const struct sourcereader *r, const char **why)
{
	cleanup_strbuf struct strbuf at = STRBUF_INIT;

	*why = "its path is relative";
	for (size_t i = 0; sourcefile_candidate(path, dirs, i, &at); i++) {
		struct sourcefile *s = file_open(at.buf, dirs, r, why);

		if (s)
			return s;
	}
	return NULL;
}

void sourcefile_close(struct sourcefile *s)
{
	if (!s)
		return;
	free(s->path);
	free(s->text);
	free(s->starts);
	free(s);
}

const char *sourcefile_path(const struct sourcefile *s)
{
	return s->path;
}

int64_t sourcefile_mtime_ns(const struct sourcefile *s)
{
	return s->mtime_ns;
}

bool sourcefile_line(const struct sourcefile *s, uint32_t n, struct strbuf *out)
{
	const char *at, *end;
	size_t column = 0;

	strbuf_reset(out);
	if (!n || n > s->n_lines)
		return false;
	at = s->text + s->starts[n - 1];
	end = s->text + s->starts[n];
	while (end > at && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	while (at < end) {
		const char *tab = memchr(at, '\t', (size_t)(end - at));
		const char *stop = tab ? tab : end;

		strbuf_addshown(out, at, (size_t)(stop - at));
		column += (size_t)(stop - at);
		if (tab)
			do
				strbuf_addch(out, ' ');
			while (++column % TAB);
		at = tab ? tab + 1 : end;
	}
	return true;
}
