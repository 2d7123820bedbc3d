/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/engines.h"

#include <dirent.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define ARGS_MAX   65536u
#define ENV_MAX    131072u
#define CONFIG_MAX (1u << 20)
#define TASKS      "/io.containerd.runtime.v2.task"

/* ---- what command lines and folders say ---- */

static bool take_path(const char *path, size_t len, char *out, size_t size)
{
	if (!len || len >= size || *path != '/' || memchr(path, 0, len))
		return false;
	memcpy(out, path, len);
	out[len] = 0;
	return true;
}

/* The last value of an option: "NAME VALUE" or "NAME=VALUE". */
static bool value_of(const char *args, size_t len, const char *const *names, char *out, size_t size)
{
	bool found = false, next = false;

	for (size_t pos = 0; pos < len;) {
		const char *arg = args + pos;
		size_t n = strnlen(arg, len - pos);
		bool is_value = next;

		next = false;
		if (is_value)
			found = take_path(arg, n, out, size);
		for (size_t i = 0; !is_value && names[i]; i++) {
			size_t k = strlen(names[i]);

			if (n < k || memcmp(arg, names[i], k))
				continue;
			next |= n == k;
			if (n > k && arg[k] == '=')
				found = take_path(arg + k + 1, n - k - 1, out, size);
		}
		pos += n + 1;
	}
	return found;
}

bool engines_data_root(const char *args, size_t len, char *out, size_t size)
{
	return value_of(args, len, (const char *const[]){"--data-root", "--graph", "-g", NULL}, out,
			size);
}

bool engines_config_file(const char *args, size_t len, char *out, size_t size)
{
	return value_of(args, len, (const char *const[]){"--config-file", NULL}, out, size);
}

/* Removes the last component. */
static bool up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = 0;
	return true;
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && !strcmp(s + n - k, end);
}

bool engines_storage(const char *args, size_t len, char *out, size_t size)
{
	char path[512];

	if (!value_of(args, len, (const char *const[]){"-b", "--bundle", NULL}, path,
		      sizeof(path)) ||
	    !ends_in(path, "/userdata") || !up(path) || !up(path) || !ends_in(path, "-containers"))
		return false;
	return take_path(path, strlen(path), out, size);
}

bool engines_tasks(const char *cwd, char *out, size_t size)
{
	char bundle[512], tasks[512];

	if (!take_path(cwd, strlen(cwd), bundle, sizeof(bundle)) || !up(bundle))
		return false;
	memcpy(tasks, bundle, sizeof(tasks));
	return up(tasks) && ends_in(tasks, TASKS) && take_path(bundle, strlen(bundle), out, size);
}

/* ---- processes ---- */

/* "data-root" of its configuration file, read below its root. */
static bool configured_root(uint32_t pid, const char *file, char *out, size_t size)
{
	cleanup_fd int root = openin_root(pid), fd = -1;
	cleanup_free char *text = NULL;
	json_t *conf;
	const char *dir;
	struct stat st;
	size_t len = 0;
	bool found;

	fd = root < 0 ? -1 : openin(root, file, CONFIG_MAX, &st);
	if (fd < 0 || openin_read(fd, (size_t)st.st_size, &text, &len))
		return false;
	conf = json_loadb(text, len, 0, NULL);
	dir = json_string_value(json_object_get(conf, "data-root"));
	if (!dir)
		dir = json_string_value(json_object_get(conf, "graph"));
	found = dir && take_path(dir, strlen(dir), out, size);
	json_decref(conf);
	return found;
}

/* Of an engine that is not root's: in a folder below the home of its environment. */
static bool below_home(uint32_t pid, const char *folder, char *out, size_t size)
{
	static const char home[] = "HOME=";
	cleanup_free char *env = NULL;
	char path[512];
	size_t len = 0;

	if (proc_read(pid, "environ", ENV_MAX, &env, &len))
		return false;
	for (size_t at = 0; at < len; at += strnlen(env + at, len - at) + 1)
		if (len - at > sizeof(home) && !memcmp(env + at, home, sizeof(home) - 1)) {
			snprintf(path, sizeof(path), "%.*s/%s",
				 (int)strnlen(env + at + 5, len - at - 5), env + at + 5, folder);
			return take_path(path, strlen(path), out, size);
		}
	return false;
}

static bool look_at_docker(struct engine *e, const char *args, size_t len)
{
	char file[512];

	if (engines_data_root(args, len, e->folder, sizeof(e->folder)))
		return true;
	if (!engines_config_file(args, len, file, sizeof(file)) &&
	    (!e->uid || !below_home(e->pid, ".config/docker/daemon.json", file, sizeof(file))))
		snprintf(file, sizeof(file), "/etc/docker/daemon.json");
	if (!configured_root(e->pid, file, e->folder, sizeof(e->folder)) &&
	    (!e->uid || !below_home(e->pid, ".local/share/docker", e->folder, sizeof(e->folder))))
		e->folder[0] = 0;
	return true;
}

static bool look_at_shim(struct engine *e)
{
	char cwd[512];

	return !proc_readlink(e->pid, "cwd", cwd, sizeof(cwd)) &&
	       engines_tasks(cwd, e->folder, sizeof(e->folder));
}

/* Which engine is it, by its command name? */
static bool kind_of(const char *comm, enum engine_kind *kind)
{
	if (!strcmp(comm, "dockerd"))
		*kind = ENGINE_DOCKER;
	else if (!strcmp(comm, "conmon"))
		*kind = ENGINE_STORAGE;
	else if (!strncmp(comm, "containerd-shim", 15))
		*kind = ENGINE_CONTAINERD;
	else
		return false;
	return true;
}

static bool is_in_container(uint32_t pid)
{
	struct container_ref ref;
	char cgroup[4096];

	return !proc_read_cgroup(pid, cgroup, sizeof(cgroup)) &&
	       container_parse(cgroup, strlen(cgroup), &ref);
}

static bool look_at(uint32_t pid, struct engine *e)
{
	cleanup_free char *comm = NULL, *args = NULL;
	struct proc_status status;
	size_t len = 0;

	*e = (struct engine){.pid = pid};
	if (proc_read(pid, "comm", 64, &comm, &len) || !len)
		return false;
	comm[len - 1] = 0;
	if (!kind_of(comm, &e->kind) || proc_read_status(pid, &status))
		return false;
	e->uid = status.euid;
	/* monitors of Podman and CRI-O, and shims, may run in the parent of the container's cgroup,
	 * but never in a container */
	if (is_in_container(pid))
		return false;
	if (e->kind == ENGINE_CONTAINERD)
		return look_at_shim(e);
	if (proc_read(pid, "cmdline", ARGS_MAX, &args, &len))
		return false;
	return e->kind == ENGINE_DOCKER ? look_at_docker(e, args, len) :
					  engines_storage(args, len, e->folder, sizeof(e->folder));
}

static bool is_there(const struct engine *all, size_t n, const struct engine *e)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].kind == e->kind && all[i].uid == e->uid &&
		    !strcmp(all[i].folder, e->folder))
			return true;
	return false;
}

size_t engines_find(struct engine out[ENGINES_MAX])
{
	cleanup_dir DIR *d = opendir("/proc");
	const struct dirent *de;
	struct engine e;
	size_t n = 0;

	while (d && n < ENGINES_MAX && (de = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(de->d_name, &end, 10);

		if (pid && !*end && look_at((uint32_t)pid, &e) && !is_there(out, n, &e))
			out[n++] = e;
	}
	return n;
}

/* ---- as last seen ---- */

static struct {
	pthread_mutex_t lock;
	struct engine all[ENGINES_MAX];
	size_t n;
	int64_t found_ns; /* 0: never */
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool engines_look_again(void)
{
	int64_t now = clock_boot_ns();
	bool due;

	pthread_mutex_lock(&last.lock);
	due = !last.found_ns || now - last.found_ns > ENGINES_KEEP_NS;
	if (due) {
		last.n = engines_find(last.all);
		last.found_ns = now;
	}
	pthread_mutex_unlock(&last.lock);
	return due;
}

size_t engines_known(struct engine out[ENGINES_MAX])
{
	size_t n;

	pthread_mutex_lock(&last.lock);
	n = last.n;
	memcpy(out, last.all, n * sizeof(*out));
	pthread_mutex_unlock(&last.lock);
	return n;
}
