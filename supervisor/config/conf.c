/* SPDX-License-Identifier: Apache-2.0 */
/* conf: the sources of settings, weakest first, and what the families' settings come to. */
#include "supervisor/config/conf.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define FILE_MAX (256u << 10)

size_t conf_count(void)
{
	size_t n = CONF_FAMILY;

	while (conf_setting((enum conf_key)n))
		n++;
	return n;
}

enum conf_key conf_shown(size_t n)
{
	size_t of_families = conf_count() - CONF_FAMILY;

	if (n <= CONF_FAMILIES)
		return (enum conf_key)n;
	if (n <= CONF_FAMILIES + of_families)
		return (enum conf_key)(CONF_FAMILY + n - CONF_FAMILIES - 1);
	return (enum conf_key)(n - of_families);
}

static int refuse_path(const char *path, int error, struct err *e)
{
	bool rights = error == EACCES || error == EPERM;

	err_set(e, -error,
		rights                              ? EXIT_PERMISSION :
		error == ENOENT || error == ENOTDIR ? EXIT_USAGE :
						      EXIT_RUNTIME,
		"cannot read %s: %s", path, strerror(error));
	err_fix(e, rights ? "run it with sudo, or make it readable: chmod a+rX" :
			    "name a folder with a sonde.conf: --config DIR");
	return -error;
}

static int load_file(struct conf *c, const char *path, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_free char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse_path(path, errno, e);
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		err_set(e, -EINVAL, EXIT_USAGE, "%s is not a regular file of at most %u KiB", path,
			FILE_MAX >> 10);
		err_fix(e,
			"put the configuration there, or remove it; another folder: --config DIR");
		return -EINVAL;
	}
	/* what it says is done as root */
	if (geteuid() == 0 &&
	    (st.st_uid != 0 || st.st_mode & S_IWOTH || (st.st_gid != 0 && st.st_mode & S_IWGRP))) {
		err_set(e, -EPERM, EXIT_PERMISSION, "%s may be changed by users other than root",
			path);
		err_fix(e,
			"look at what it says, then: sudo chown root:root %s; sudo chmod go-w %s",
			path, path);
		return -EPERM;
	}
	text = mem_alloc((size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size);
	if (n < 0)
		return refuse_path(path, errno, e);
	return conf_parse(c, path, text, (size_t)n, e);
}

static int is_conf(const struct dirent *de)
{
	size_t n = strlen(de->d_name);

	return n > 5 && de->d_name[0] != '.' && !strcmp(de->d_name + n - 5, ".conf");
}

static int load_files(struct conf *c, const char *dir, struct err *e)
{
	struct dirent **list = NULL;
	char path[4096];
	int n, rc;

	snprintf(path, sizeof(path), "%s/sonde.conf", dir);
	rc = load_file(c, path, e);
	snprintf(path, sizeof(path), "%s/conf.d", dir);
	n = rc ? 0 : scandir(path, &list, is_conf, alphasort);
	if (n < 0 && errno != ENOENT)
		rc = refuse_path(path, errno, e);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/conf.d/%s", dir, list[i]->d_name);
		if (!rc)
			rc = load_file(c, path, e);
		free(list[i]);
	}
	free(list);
	return rc;
}

/* systemd's StateDirectory= is a default: a list with colons, of which the first counts. */
static int take_state_directory(struct conf *c, struct err *e)
{
	const char *list = getenv("STATE_DIRECTORY");
	char path[CONF_TEXT_MAX];

	if (!list || !*list)
		return 0;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(list, ":"), list);
	return conf_set(c, CONF_STORE, path, "STATE_DIRECTORY", e);
}

/* "log-lines" -> "SONDE_LOG_LINES" */
static const char *variable(const char *name, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "SONDE_%s", name);

	for (size_t i = 0; i < n && i < size; i++)
		buf[i] = buf[i] == '-' ? '_' : (char)toupper((unsigned char)buf[i]);
	return buf;
}

/* --- settings of families --- */

const char *conf_host_root = "";

static int add_family(struct conf *c, const struct probe_family *family, enum conf_key key,
		      struct err *e)
{
	const struct probe_family *out[FAMILIES_MAX];
	struct conf_value *families = &c->value[CONF_FAMILIES];
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char origin[2 * CONF_ORIGIN_MAX];
	size_t n;
	int rc = families_of(families->text, out, &n, e);

	for (size_t i = 0; !rc && i < n; i++)
		if (out[i] == family)
			return 0;
	if (rc)
		return rc;
	strbuf_addf(&text, "%s,%s", families->text, family->name);
	snprintf(origin, sizeof(origin), "%.70s, %s: %.70s", families->origin,
		 conf_setting(key)->name, c->value[key].origin);
	return conf_set(c, CONF_FAMILIES, strbuf_str(&text), origin, e);
}

static bool is_enabled(const struct family_setting *f, const char *value, bool chosen)
{
	char path[PATH_MAX];

	if (!f->enables || !strcmp(value, "off"))
		return false;
	if (!f->auto_file || strcmp(value, "auto"))
		return true;
	snprintf(path, sizeof(path), "%s%s", conf_host_root, f->auto_file);
	return !chosen && !access(path, F_OK);
}

/* Once all sources are read: adds the families that settings enable to `families`. */
static int add_enabled(struct conf *c, struct err *e)
{
	bool chosen = strcmp(c->value[CONF_FAMILIES].origin, "default") != 0;
	const struct family_setting *f;
	const struct probe_family *of;
	int rc = 0;

	for (size_t i = 0; !rc && (f = family_setting(i, &of)); i++) {
		enum conf_key key = (enum conf_key)(CONF_FAMILY + i);

		if (is_enabled(f, c->value[key].text, chosen))
			rc = add_family(c, of, key, e);
	}
	return rc;
}

size_t conf_family_options(const struct conf *c, const struct probe_family *f, char **argv)
{
	const struct family_setting *s;
	const struct probe_family *of;
	size_t n = 0;

	for (size_t i = 0; (s = family_setting(i, &of)); i++) {
		const char *value = c->value[CONF_FAMILY + i].text;

		if (of != f || !s->option || !strcmp(value, s->setting.fallback) ||
		    (s->enables && !strcmp(value, "on")))
			continue;
		argv[n++] = (char *)s->option;
		argv[n++] = (char *)value;
	}
	return n;
}

bool conf_family_differs(const struct conf *a, const struct conf *b, const struct probe_family *f)
{
	const struct probe_family *of;
	bool differs = false;

	for (size_t i = 0; family_setting(i, &of); i++)
		differs |= of == f &&
			   strcmp(a->value[CONF_FAMILY + i].text, b->value[CONF_FAMILY + i].text);
	return differs;
}

/* --- all of it --- */

int conf_load(const char *dir, const char *const flags[CONF_KEYS], struct conf *out, struct err *e)
{
	const char *env = getenv("SONDE_CONFIG");
	const size_t n = conf_count();
	struct conf c = {0};
	char origin[CONF_ORIGIN_MAX];
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = conf_set(&c, (enum conf_key)i, conf_fallback((enum conf_key)i), "default", e);
	if (!rc)
		rc = take_state_directory(&c, e);
	/* --config must name a directory that exists; $SONDE_CONFIG may be outdated */
	if (!rc && dir && access(dir, F_OK) < 0)
		rc = refuse_path(dir, errno, e);
	if (!rc)
		rc = load_files(&c, dir ? dir : env && *env ? env : CONF_DIR, e);
	for (size_t i = 0; i < n && !rc; i++) {
		const char *name = conf_setting((enum conf_key)i)->name;

		env = getenv(variable(name, origin, sizeof(origin)));
		if (env && *env)
			rc = conf_set(&c, (enum conf_key)i, env, origin, e);
		if (rc || !flags || !flags[i])
			continue;
		snprintf(origin, sizeof(origin), "--%s", name);
		rc = conf_set(&c, (enum conf_key)i, flags[i], origin, e);
	}
	if (!rc)
		rc = add_enabled(&c, e);
	if (!rc)
		*out = c;
	return rc;
}

void conf_print(const struct conf *c, bool origin, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < conf_count(); i++) {
		enum conf_key key = conf_shown(i);
		const struct setting *s = conf_setting(key);

		if (strcmp(section, conf_section(key)))
			fprintf(out, "%s[%s]\n", *section ? "\n" : "", conf_section(key));
		section = conf_section(key);
		if (origin)
			fprintf(out, "%-12s = %-20s # %s: %s\n", s->name, c->value[key].text,
				c->value[key].origin, s->help);
		else
			fprintf(out, "%-12s = %s\n", s->name, c->value[key].text);
	}
}
