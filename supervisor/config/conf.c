/* SPDX-License-Identifier: Apache-2.0 */
/* conf: all places where something may be said, weakest first. */
#include "supervisor/config/conf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/families/families.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "supervisor/config/conf_parts.h"

#define FILE_MAX (256u << 10)

const char *conf_name(enum conf_key key)
{
	return key < CONF_KEYS ? conf_rows[key].name : NULL;
}

const char *conf_help(enum conf_key key)
{
	return conf_rows[key].help;
}

const char *conf_section(enum conf_key key)
{
	return conf_rows[key].section;
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
		err_set(e, -EINVAL, EXIT_USAGE, "%s is no file of at most %u KiB", path,
			FILE_MAX >> 10);
		err_fix(e,
			"put the configuration there, or remove it; another folder: --config DIR");
		return -EINVAL;
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

/* systemd's StateDirectory= is a default: a list with colons, the first of which is meant. */
static int take_state_directory(struct conf *c, struct err *e)
{
	const char *list = getenv("STATE_DIRECTORY");
	char path[CONF_TEXT_MAX];

	if (!list || !*list)
		return 0;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(list, ":"), list);
	return conf_set(c, CONF_STORE, path, "STATE_DIRECTORY", e);
}

const char *conf_gpu_driver = "/proc/driver/nvidia/version";

/* `requests = on`, `gpu = on` and `scrape = on` are words of families; once all has been said they
 * stand among them. */
static int take_family(struct conf *c, enum conf_key key, struct err *e)
{
	const struct probe_family *out[FAMILIES_MAX], *family = family_named(conf_name(key));
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
	snprintf(origin, sizeof(origin), "%.70s, %s: %.70s", families->origin, conf_name(key),
		 c->value[key].origin);
	return conf_set(c, CONF_FAMILIES, strbuf_str(&text), origin, e);
}

static int take_words(struct conf *c, struct err *e)
{
	bool found = c->gpu_auto && !strcmp(c->value[CONF_FAMILIES].origin, "default") &&
		     !access(conf_gpu_driver, F_OK);
	int rc = c->requests ? take_family(c, CONF_REQUESTS, e) : 0;

	if (!rc && (c->gpu || found))
		rc = take_family(c, CONF_GPU, e);
	return !rc && c->scrape ? take_family(c, CONF_SCRAPE, e) : rc;
}

int conf_load(const char *dir, const char *const flags[CONF_KEYS], struct conf *out, struct err *e)
{
	const char *env = getenv("SONDE_CONFIG");
	struct conf c = {0};
	char origin[CONF_ORIGIN_MAX];
	int rc = 0;

	for (int i = 0; i < CONF_KEYS && !rc; i++)
		rc = conf_set(&c, (enum conf_key)i, conf_fallback((enum conf_key)i), "default", e);
	if (!rc)
		rc = take_state_directory(&c, e);
	/* who names one means it; the environment may be older than the folder */
	if (!rc && dir && access(dir, F_OK) < 0)
		rc = refuse_path(dir, errno, e);
	if (!rc)
		rc = load_files(&c, dir ? dir : env && *env ? env : CONF_DIR, e);
	for (int i = 0; i < CONF_KEYS && !rc; i++) {
		env = getenv(conf_rows[i].env);
		if (env && *env)
			rc = conf_set(&c, (enum conf_key)i, env, conf_rows[i].env, e);
		if (rc || !flags || !flags[i])
			continue;
		snprintf(origin, sizeof(origin), "--%s", conf_rows[i].name);
		rc = conf_set(&c, (enum conf_key)i, flags[i], origin, e);
	}
	if (!rc)
		rc = take_words(&c, e);
	if (!rc)
		*out = c;
	return rc;
}

void conf_print(const struct conf *c, bool origin, FILE *out)
{
	const char *section = "";

	for (int i = 0; i < CONF_KEYS; i++) {
		const char *text = c->value[i].text;

		if (strcmp(section, conf_rows[i].section))
			fprintf(out, "%s[%s]\n", *section ? "\n" : "", conf_rows[i].section);
		section = conf_rows[i].section;
		if (origin)
			fprintf(out, "%-12s = %-20s # %s: %s\n", conf_rows[i].name, text,
				c->value[i].origin, conf_rows[i].help);
		else
			fprintf(out, "%-12s = %s\n", conf_rows[i].name, text);
	}
}
