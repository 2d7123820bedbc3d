/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checkfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/checks/checkslo.h"
#include "tools/checks/shipped.h" /* generated: SHIPPED_CHECKS */

/* --- its head --- */

static int bad_line(const char *origin, size_t line, const char *why, struct err *e)
{
	err_set(e, -EINVAL, EXIT_USAGE, "%.300s:%zu: %s", origin, line, why);
	err_fix(e, "sonde check --list --json   shows the checks that ship with sonde");
	return -EINVAL;
}

/* "90: percent of its limit" */
static bool number_of(const char *value, double *out, char *what, size_t size)
{
	char *end;

	*out = strtod(value, &end);
	if (end == value || *out != *out || (*end && *end != ':'))
		return false;
	snprintf(what, size, "%s", *end ? end + 1 + strspn(end + 1, " ") : "");
	return true;
}

static const char *minutes_set(const char *value, int *out)
{
	char what[120];
	double n;

	if (!number_of(value, &n, what, sizeof(what)) || n < 1 || n > CHECKFILE_WINDOW_MIN)
		return "minutes must be a number from 1 to 1440";
	*out = (int)n;
	return NULL;
}

/* NULL: accepted; otherwise the error. */
static const char *key_set(struct checkfile *c, const char *key, const char *value)
{
	static const struct {
		const char *key;
		size_t at, size;
	} texts[] = {{"unit", offsetof(struct checkfile, unit), sizeof(c->unit)},
		     {"next", offsetof(struct checkfile, next), sizeof(c->next)},
		     {"needs", offsetof(struct checkfile, needs), sizeof(c->needs)}};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!strcmp(texts[i].key, key)) {
			snprintf((char *)c + texts[i].at, texts[i].size, "%s", value);
			return NULL;
		}
	if (!strcmp(key, "lines")) {
		c->lines = !strcmp(value, "memory");
		return c->lines ? NULL : "lines must be memory";
	}
	if (!strcmp(key, "threshold"))
		return number_of(value, &c->threshold, c->threshold_is, sizeof(c->threshold_is)) ?
			       NULL :
			       "threshold must be a number";
	if (!strcmp(key, "for"))
		return minutes_set(value, &c->for_min);
	if (!strcmp(key, "window"))
		return minutes_set(value, &c->window_min);
	if (strcmp(key, "level") != 0)
		return "unknown key (known: level, threshold, for, window, unit, needs, next)";
	c->critical = !strcmp(value, "critical");
	return c->critical || !strcmp(value, "warning") ? NULL :
							  "level must be warning or critical";
}

#define NO_NAME \
	"the file must begin with '-- NAME: what it finds', where NAME is the file name without .sql"

/* "-- NAME: words" or "-- key = value" */
static const char *head_line(struct checkfile *c, const char *line)
{
	size_t name = strlen(c->name);
	char key[24], value[400];

	if (!strncmp(line, c->name, name) && line[name] == ':') {
		snprintf(c->summary, sizeof(c->summary), "%s",
			 line + name + 1 + strspn(line + name + 1, " "));
		return NULL;
	}
	if (!strncmp(line, "SPDX-", 5))
		return NULL;
	if (sscanf(line, "%23[a-z] = %399[^\n]", key, value) != 2)
		return c->summary[0] ? NULL : NO_NAME; /* a plain comment */
	return key_set(c, key, value);
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < sizeof(((struct checkfile *)NULL)->name) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

int checkfile_parse(const char *name, const char *origin, const char *text, size_t len,
		    struct checkfile *out, struct err *e)
{
	cleanup_free char *copy = mem_strndup(text, len);
	struct checkfile c = {.for_min = 1};
	const char *why = NULL;
	char *line = copy;
	size_t n = 0;

	if (!is_name(name))
		return bad_line(origin, 1,
				"a check's name may contain a-z, 0-9, - and _, at most 63", e);
	if (strlen(copy) != len)
		return bad_line(origin, 1, "it contains a NUL byte", e);
	snprintf(c.name, sizeof(c.name), "%s", name);
	while (!why && !strncmp(line, "--", 2)) {
		char *end = line + strcspn(line, "\n");
		const bool last = !*end;

		*end = '\0';
		n++;
		why = head_line(&c, line + 2 + strspn(line + 2, " "));
		line = last ? end : end + 1;
	}
	if (!why && !c.summary[0])
		why = NO_NAME;
	if (!why && !line[strspn(line, " \t\n")])
		why = "there is no query";
	if (why)
		return bad_line(origin, n ? n : 1, why, e);
	c.window_min = c.window_min ? c.window_min : c.for_min;
	c.sql = mem_strdup(line);
	*out = c;
	return 0;
}

void checkfile_release(struct checkfile *c)
{
	free(c->sql);
	*c = (struct checkfile){0};
}

/* --- all of them --- */

static void put(struct checkfiles *all, size_t *cap, struct checkfile *c)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->rows[i].name, c->name)) {
			checkfile_release(&all->rows[i]);
			all->rows[i] = *c;
			return;
		}
	mem_grow(all->rows, all->n, *cap);
	all->rows[all->n++] = *c;
}

static int file_read(const char *path, char **text, size_t *len, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *buf = mem_alloc(CHECKFILE_BYTES + 1);
	struct stat st;
	ssize_t n = 0;

	*len = 0;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		while (*len <= CHECKFILE_BYTES &&
		       (n = read(fd, buf + *len, CHECKFILE_BYTES + 1 - *len)) > 0)
			*len += (size_t)n;
	else
		n = -1;
	if (n < 0 || *len > CHECKFILE_BYTES) {
		free(buf);
		return err_set(e, -EINVAL, EXIT_USAGE, "cannot read %.300s: %s", path,
			       n < 0 ? strerror(errno ? errno : EINVAL) :
				       "it is larger than 64 KiB");
	}
	*text = buf;
	return 0;
}

static bool ends_with(const char *file, const char *end)
{
	size_t n = strlen(file), m = strlen(end);

	return n > m && !strcmp(file + n - m, end);
}

static int one_read(const char *dir, const char *file, struct checkfiles *all, size_t *cap,
		    struct err *e)
{
	cleanup_free char *text = NULL;
	struct checkfile c[CHECKSLO_MOST];
	char path[1024], name[256];
	size_t len, n = 1;
	int rc;

	snprintf(path, sizeof(path), "%.700s/%.255s", dir, file);
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(".sql")), file);
	rc = file_read(path, &text, &len, e);
	if (!rc)
		rc = ends_with(file, ".slo") ? checkslo_parse(name, path, text, len, c, &n, e) :
					       checkfile_parse(name, path, text, len, c, e);
	for (size_t i = 0; !rc && i < n; i++) {
		c[i].own = true;
		put(all, cap, &c[i]);
	}
	return rc;
}

static bool is_check(const char *file)
{
	return *file != '.' && strlen(file) < 256 &&
	       (ends_with(file, ".sql") || ends_with(file, ".slo"));
}

static int own_read(const char *dir, struct checkfiles *all, size_t *cap, struct err *e)
{
	char usual[600];
	const char *conf = getenv("SONDE_CONFIG");
	cleanup_dir DIR *d = NULL;
	struct dirent *de;
	int rc = 0;

	snprintf(usual, sizeof(usual), "%.500s/checks.d", conf && *conf ? conf : "/etc/sonde");
	d = opendir(dir ? dir : usual);
	if (!d && !dir)
		return 0;
	if (!d)
		return err_set(e, -errno, EXIT_USAGE, "cannot read %.300s: %s", dir,
			       strerror(errno));
	while (!rc && (de = readdir(d)))
		if (is_check(de->d_name))
			rc = one_read(dir ? dir : usual, de->d_name, all, cap, e);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct checkfile *)a)->name, ((const struct checkfile *)b)->name);
}

int checkfiles_read(const char *dir, struct checkfiles *out, struct err *e)
{
	struct checkfile c;
	size_t cap = 0;
	int rc = 0;

	*out = (struct checkfiles){0};
	for (size_t i = 0; !rc && SHIPPED_CHECKS[i].name; i++) {
		rc = checkfile_parse(SHIPPED_CHECKS[i].name, SHIPPED_CHECKS[i].name,
				     SHIPPED_CHECKS[i].text, strlen(SHIPPED_CHECKS[i].text), &c, e);
		if (!rc)
			put(out, &cap, &c);
	}
	if (!rc)
		rc = own_read(dir, out, &cap, e);
	if (rc)
		checkfiles_release(out);
	else
		qsort(out->rows, out->n, sizeof(*out->rows), by_name);
	return rc;
}

void checkfiles_release(struct checkfiles *c)
{
	for (size_t i = 0; i < c->n; i++)
		checkfile_release(&c->rows[i]);
	free(c->rows);
	*c = (struct checkfiles){0};
}
