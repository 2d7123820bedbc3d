/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/places.h"

#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/proc/engines.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define ENGINES_NS (30 * NSEC_PER_SEC)
#define WATCH_NS   (10 * NSEC_PER_SEC)
#define ID_LEN     64

struct look {
	struct places *p;
	void (*found)(void *ctx, const struct place *x);
	void *ctx;
	bool watches;          /* this round adds folders to the watch */
	uint32_t uid, of_user; /* of the engine that is looked at; how many logs it had */
};

void places_init(struct places *p, const char *files)
{
	*p = (struct places){.files = files,
			     .inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
			     .watched_ns = INT64_MIN,
			     .engines_ns = INT64_MIN};
}

void places_release(struct places *p)
{
	if (p->inotify >= 0)
		close(p->inotify);
	p->inotify = -1;
}

bool places_changed(struct places *p)
{
	char events[4096];
	bool any = false;

	while (p->inotify >= 0 && read(p->inotify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static void tell(struct look *l, struct place *x)
{
	x->uid = l->uid;
	if (x->uid && l->of_user++ >= PLACES_USER)
		return;
	if (l->p->n++ < PLACES_MOST)
		l->found(l->ctx, x);
}

static bool is_id(const char *name)
{
	return strlen(name) == ID_LEN && strspn(name, "0123456789abcdef") == ID_LEN;
}

/* ---- containers ---- */

static void docker_look(struct look *l, const char *root)
{
	struct place x = {.kind = "docker"};
	char folder[PATH_MAX / 2], path[PATH_MAX];
	cleanup_dir DIR *d = NULL;
	struct dirent *e;

	snprintf(folder, sizeof(folder), "%.1900s/containers", root);
	d = opendir(folder);
	if (d && l->watches && l->p->inotify >= 0)
		inotify_add_watch(l->p->inotify, folder, IN_CREATE);
	while (d && (e = readdir(d))) {
		if (!is_id(e->d_name))
			continue;
		snprintf(x.id, sizeof(x.id), "%.64s", e->d_name);
		x.path = path;
		x.form = LOG_DOCKER;
		snprintf(path, sizeof(path), "%s/%.64s/%.64s-json.log", folder, x.id, x.id);
		if (!access(path, F_OK)) {
			tell(l, &x);
			continue;
		}
		x.form = LOG_LOCAL;
		snprintf(path, sizeof(path), "%s/%.64s/local-logs/container.log", folder, x.id);
		if (!access(path, F_OK))
			tell(l, &x);
	}
}

static void storage_look(struct look *l, const char *folder)
{
	struct place x = {.kind = "podman", .form = LOG_CRI};
	char path[PATH_MAX];
	cleanup_dir DIR *d = opendir(folder);
	struct dirent *e;

	if (d && l->watches && l->p->inotify >= 0)
		inotify_add_watch(l->p->inotify, folder, IN_CREATE);
	while (d && (e = readdir(d))) {
		if (!is_id(e->d_name))
			continue;
		snprintf(x.id, sizeof(x.id), "%.64s", e->d_name);
		snprintf(path, sizeof(path), "%.1900s/%.64s/userdata/ctr.log", folder, x.id);
		x.path = path;
		if (!access(path, F_OK))
			tell(l, &x);
	}
}

static void engines_look(struct look *l, int64_t now_ns)
{
	struct engine all[ENGINES_MAX];
	char folder[640];
	size_t n;

	if (l->p->engines_ns == INT64_MIN || now_ns - l->p->engines_ns >= ENGINES_NS) {
		l->p->engines_ns = now_ns;
		engines_look_again();
	}
	n = engines_known(all);
	for (size_t i = 0; i < n; i++) {
		l->uid = all[i].uid;
		l->of_user = 0;
		snprintf(folder, sizeof(folder), "/proc/%u/root%.512s", all[i].pid,
			 *all[i].folder ? all[i].folder : "/var/lib/docker");
		if (all[i].kind == ENGINE_DOCKER)
			docker_look(l, folder);
		else if (all[i].kind == ENGINE_STORAGE)
			storage_look(l, folder);
	}
	l->uid = 0;
}

/* ---- pods ---- */

#define PODS "/var/log/pods"

/* The kubelet's links say the container's id: POD_NAMESPACE_CONTAINER-ID.log */
void places_pod_container(const char *path, char out[72])
{
	cleanup_dir DIR *d = opendir("/var/log/containers");
	char target[PATH_MAX];
	struct dirent *e;

	*out = 0;
	while (d && !*out && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
		size_t len = strlen(e->d_name);

		target[n > 0 ? n : 0] = 0;
		if (len > ID_LEN + 5 && !strcmp(target, path))
			snprintf(out, 72, "%.64s", e->d_name + len - ID_LEN - 4);
	}
}

static void pod_name(const char *pod, const char *container, char out[256])
{
	const char *first = strchr(pod, '_'), *last = strrchr(pod, '_');

	if (!first || last == first)
		snprintf(out, 256, "%.120s/%.120s", pod, container);
	else
		snprintf(out, 256, "%.*s/%.*s/%.100s", (int)(first - pod), pod,
			 (int)(last - first - 1), first + 1, container);
}

static void pod_container_look(struct look *l, const char *pod, const char *container)
{
	struct place x = {.kind = "cri", .form = LOG_CRI};
	char folder[PATH_MAX / 2], path[PATH_MAX];
	cleanup_dir DIR *d = NULL;
	struct dirent *e;

	snprintf(folder, sizeof(folder), PODS "/%.255s/%.255s", pod, container);
	d = opendir(folder);
	pod_name(pod, container, x.name);
	while (d && (e = readdir(d))) {
		size_t digits = strspn(e->d_name, "0123456789");

		if (!digits || strcmp(e->d_name + digits, ".log") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%.255s", folder, e->d_name);
		x.path = path;
		tell(l, &x);
	}
}

static void pods_look(struct look *l)
{
	cleanup_dir DIR *pods = opendir(PODS);
	struct dirent *pod, *container;
	char folder[PATH_MAX];

	if (pods && l->watches && l->p->inotify >= 0)
		inotify_add_watch(l->p->inotify, PODS, IN_CREATE);
	while (pods && (pod = readdir(pods))) {
		cleanup_dir DIR *d = NULL;

		if (pod->d_name[0] == '.')
			continue;
		snprintf(folder, sizeof(folder), PODS "/%.255s", pod->d_name);
		d = opendir(folder);
		while (d && (container = readdir(d)))
			if (container->d_name[0] != '.')
				pod_container_look(l, pod->d_name, container->d_name);
	}
}

/* ---- the journal ---- */

static void journal_look(struct look *l, const char *folder)
{
	struct place x = {.kind = "journal", .form = LOG_JOURNAL};
	cleanup_dir DIR *d = opendir(folder);
	char path[PATH_MAX];
	struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (strcmp(e->d_name, "system.journal") != 0 &&
		    (strncmp(e->d_name, "user-", 5) != 0 || strchr(e->d_name, '@') || n < 13 ||
		     strcmp(e->d_name + n - 8, ".journal") != 0))
			continue;
		snprintf(path, sizeof(path), "%.1900s/%.255s", folder, e->d_name);
		x.path = path;
		tell(l, &x);
	}
}

static void journals_look(struct look *l)
{
	static const char *const roots[] = {"", "/proc/1/root"}, *const folders[] = {
									 "/var/log/journal",
									 "/run/log/journal"};
	uint32_t before = l->p->n;
	char folder[PATH_MAX / 2];

	for (size_t i = 0; i < ARRAY_SIZE(roots) && l->p->n == before; i++)
		for (size_t k = 0; k < ARRAY_SIZE(folders); k++) {
			char place[64];
			cleanup_dir DIR *d = NULL;
			struct dirent *e;

			snprintf(place, sizeof(place), "%s%s", roots[i], folders[k]);
			d = opendir(place);
			while (d && (e = readdir(d))) {
				if (strspn(e->d_name, "0123456789abcdef") != 32 || e->d_name[32])
					continue;
				snprintf(folder, sizeof(folder), "%s/%s", place, e->d_name);
				journal_look(l, folder);
			}
		}
}

/* ---- files ---- */

static bool is_packed(const char *path)
{
	static const char *const ends[] = {".gz", ".xz", ".bz2", ".zst", ".zip"};
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (n > strlen(ends[i]) && !strcmp(path + n - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

/* PATH.1 or PATH-20261129 next to PATH. What is renamed is read to its end all the same, and a copy
 * (copytruncate) has lines that were read. */
static bool is_rotated(const char *path)
{
	char base[PATH_MAX];
	struct stat st;
	size_t n = strlen(path), digits = 0;

	while (digits < n && isdigit((unsigned char)path[n - digits - 1]))
		digits++;
	if (!digits || digits > 14 || digits + 2 > n || n >= sizeof(base))
		return false;
	if (path[n - digits - 1] != '.' && (path[n - digits - 1] != '-' || digits < 8))
		return false;
	snprintf(base, sizeof(base), "%.*s", (int)(n - digits - 1), path);
	return !stat(base, &st) && S_ISREG(st.st_mode);
}

/* The folder of the files, to see at once when one is made or renamed. */
static void folder_watch(struct look *l, const char *pattern)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(pattern, '/') - pattern), pattern);
	if (*folder && l->p->inotify >= 0)
		inotify_add_watch(l->p->inotify, folder, IN_CREATE | IN_MOVED_FROM);
}

static void pattern_look(struct look *l, const char *pattern)
{
	struct place x = {.kind = "file", .form = LOG_PLAIN};
	glob_t g = {0};

	if (*pattern == '/' && l->watches)
		folder_watch(l, pattern);
	if (*pattern == '/' && !glob(pattern, GLOB_NOSORT, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc; i++) {
			if (is_packed(g.gl_pathv[i]) || is_rotated(g.gl_pathv[i]))
				continue;
			x.path = g.gl_pathv[i];
			snprintf(x.name, sizeof(x.name), "%s", x.path);
			tell(l, &x);
		}
	globfree(&g);
}

static void files_look(struct look *l)
{
	const char *at = l->p->files;
	char pattern[PATH_MAX];

	while (at && *at) {
		size_t n = strcspn(at, " ,");

		if (n && n < sizeof(pattern)) {
			memcpy(pattern, at, n);
			pattern[n] = 0;
			pattern_look(l, pattern);
		}
		at += n + (at[n] != 0);
	}
}

/* ---- all ---- */

void places_look(struct places *p, int64_t now_ns, void (*found)(void *ctx, const struct place *x),
		 void *ctx)
{
	struct look l = {.p = p, .found = found, .ctx = ctx};

	l.watches = p->watched_ns == INT64_MIN || now_ns - p->watched_ns >= WATCH_NS;
	if (l.watches)
		p->watched_ns = now_ns;
	p->n = 0;
	docker_look(&l, containernames_docker_root());
	docker_look(&l, "/var/snap/docker/common/var-lib-docker");
	storage_look(&l, "/var/lib/containers/storage/overlay-containers");
	storage_look(&l, "/var/lib/containers/storage/vfs-containers");
	engines_look(&l, now_ns);
	pods_look(&l);
	journals_look(&l);
	files_look(&l);
	if (p->n > PLACES_MOST && !p->told_many)
		log_warn("this host has %u logs: the first %d are read", p->n, PLACES_MOST);
	p->told_many = p->told_many || p->n > PLACES_MOST;
}
