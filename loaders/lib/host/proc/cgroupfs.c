/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroupfs: from a container to its cgroup directories, ids and processes. A cgroup's id, as
 * bpf_get_current_cgroup_id returns it, is the inode number of its directory (kernfs, 64 bit). The
 * hierarchies are found in /proc/self/mountinfo; the walk is limited in depth and number.
 */
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containernames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define WALK_DEPTH 24
#define WALK_DIRS  100000

struct hierarchies {
	char v2[512], v1[512]; /* mount points, "" if none; v1: of memory, else of pids */
};

/* "ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS ... - TYPE SOURCE SUPER": only mounts of a hierarchy's
 * root count. */
static void mount_line(char *line, struct hierarchies *h)
{
	char *dash = strstr(line, " - "), *save = NULL, *field[5] = {0};
	char type[32], super[512];

	if (!dash || sscanf(dash + 3, "%31s %*s %511s", type, super) != 2)
		return;
	*dash = 0;
	for (size_t i = 0; i < 5; i++)
		field[i] = strtok_r(i ? NULL : line, " ", &save);
	if (!field[4] || strcmp(field[3], "/") || strlen(field[4]) >= sizeof(h->v2))
		return;
	if (!strcmp(type, "cgroup2") && !h->v2[0])
		proc_unescape(field[4], strlen(field[4]), h->v2);
	if (strcmp(type, "cgroup"))
		return;
	if (strstr(super, "memory") || (!h->v1[0] && strstr(super, "pids")))
		proc_unescape(field[4], strlen(field[4]), h->v1);
}

static void find_hierarchies(struct hierarchies *h)
{
	cleanup_file FILE *f = fopen("/proc/self/mountinfo", "re");
	cleanup_free char *line = NULL;
	size_t cap = 0;

	*h = (struct hierarchies){0};
	while (f && getline(&line, &cap, f) > 0)
		mount_line(line, h);
}

void container_found_release(struct container_found *f)
{
	free(f->cgroup_ids);
	free(f->v1_ids);
	free(f->pids);
	*f = (struct container_found){0};
}

static void add_id(uint64_t **ids, size_t *n, uint64_t id)
{
	*ids = mem_realloc(*ids, (*n + 1) * sizeof(**ids));
	(*ids)[(*n)++] = id;
}

static void add_pid(struct container_found *f, uint32_t pid)
{
	for (size_t i = 0; i < f->n_pids; i++)
		if (f->pids[i] == pid)
			return;
	f->pids = mem_realloc(f->pids, (f->n_pids + 1) * sizeof(*f->pids));
	f->pids[f->n_pids++] = pid;
}

static void add_procs(int dir, struct container_found *f)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	cleanup_file FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;
	uint32_t pid;

	if (fd >= 0 && !in)
		close(fd);
	while (in && fscanf(in, "%u", &pid) == 1)
		if (pid)
			add_pid(f, pid);
}

/* ---- walking ---- */

struct walk {
	struct strbuf path; /* below the mount point, "" at the root */
	size_t dirs;
	/* True: take this directory and everything below; false: look further down. */
	bool (*want)(void *ctx, const char *path, size_t len);
	void *ctx;
	struct container_found *found;
	bool v2;
};

static void take_dir(struct walk *w, int dir)
{
	struct container_found *f = w->found;
	struct stat st;

	if (fstat(dir, &st))
		return;
	if (w->v2)
		add_id(&f->cgroup_ids, &f->n_cgroup_ids, st.st_ino);
	else
		add_id(&f->v1_ids, &f->n_v1_ids, st.st_ino);
	add_procs(dir, f);
}

static void walk_dir(struct walk *w, int dir_fd, bool taken, int depth)
{
	size_t len = w->path.len;
	cleanup_dir DIR *dir = NULL;
	struct dirent *de;

	taken = taken || w->want(w->ctx, strbuf_str(&w->path), w->path.len);
	if (taken && w->found)
		take_dir(w, dir_fd);
	dir = fdopendir(dir_fd);
	if (!dir) {
		close(dir_fd);
		return;
	}
	while (depth < WALK_DEPTH && w->dirs < WALK_DIRS && (de = readdir(dir))) {
		int fd;

		if (de->d_type != DT_DIR || de->d_name[0] == '.')
			continue;
		fd = openat(dirfd(dir), de->d_name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		w->dirs++;
		strbuf_addch(&w->path, '/');
		strbuf_addstr(&w->path, de->d_name);
		walk_dir(w, fd, taken, depth + 1);
		w->path.len = len;
		if (w->path.buf)
			w->path.buf[len] = 0;
	}
}

static void walk(const char *mount, bool v2, bool (*want)(void *, const char *, size_t), void *ctx,
		 struct container_found *found)
{
	struct walk w = {.want = want, .ctx = ctx, .found = found, .v2 = v2};
	int fd = mount[0] ? open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		walk_dir(&w, fd, false, 0);
	strbuf_release(&w.path);
}

/* ---- which container is meant ---- */

struct candidate {
	struct container_ref ref;
	char name[256], project[256], service[256];
	bool meant;
};

struct search {
	const char *who;
	struct candidate *all;
	size_t n, cap;
};

static bool known(const struct search *s, const struct container_ref *ref)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->all[i].ref.id, ref->id) &&
		    !strcmp(s->all[i].ref.runtime, ref->runtime))
			return true;
	return false;
}

static void put(char out[256], const char *text)
{
	snprintf(out, 256, "%s", text ? text : "");
}

static bool collect(void *ctx, const char *path, size_t len)
{
	struct container_names names = {0};
	struct container_ref ref;
	struct search *s = ctx;

	if (!container_parse(path, len, &ref) || ref.end != len || known(s, &ref))
		return false;
	mem_grow(s->all, s->n, s->cap);
	s->all[s->n] = (struct candidate){.ref = ref};
	if (!containernames_find(containernames_docker_root(), "", &ref, &names)) {
		put(s->all[s->n].name, names.name);
		put(s->all[s->n].project, names.project);
		put(s->all[s->n].service, names.service);
	}
	container_names_release(&names);
	s->n++;
	return false;
}

/* "web", "shop" or "shop/web" */
static bool is_service(const struct candidate *c, const char *who)
{
	size_t n = strlen(c->project);

	if (*c->service && !strcmp(c->service, who))
		return true;
	if (!n || strncmp(who, c->project, n))
		return false;
	return !who[n] || (who[n] == '/' && !strcmp(who + n + 1, c->service));
}

enum { OTHER, BEGIN_OF_ID, SERVICE, EXACT };

static int rank(const struct candidate *c, const char *who)
{
	if (!strcmp(c->name, who) || !strcmp(c->ref.id, who))
		return EXACT;
	if (is_service(c, who))
		return SERVICE;
	return strlen(who) >= 3 && !strncmp(c->ref.id, who, strlen(who)) ? BEGIN_OF_ID : OTHER;
}

static const char *shown(const struct candidate *c, char buf[16])
{
	if (c->name[0])
		return c->name;
	snprintf(buf, 16, "%.12s", c->ref.id);
	return buf;
}

static int none_or_many(const struct search *s, const struct candidate *best, size_t n_best,
			struct err *e)
{
	struct strbuf list cleanup_strbuf = STRBUF_INIT;
	char buf[16];

	for (size_t i = 0; i < s->n && list.len < 200; i++)
		if (!n_best || rank(&s->all[i], s->who) == rank(best, s->who))
			strbuf_addf(&list, "%s%s", list.len ? ", " : "", shown(&s->all[i], buf));
	if (n_best) {
		err_set(e, -EINVAL, EXIT_USAGE, "%zu containers begin with '%s': %s", n_best,
			s->who, strbuf_str(&list));
		err_fix(e, "give more characters of the id");
		return -EINVAL;
	}
	err_set(e, -ENOENT, EXIT_USAGE, "no container '%s' is running%s%s", s->who,
		list.len ? "; there are: " : "", strbuf_str(&list));
	err_fix(e, list.len ? "--container NAME of one of these" : "docker ps");
	return -ENOENT;
}

/* Marks the one that is meant, or each container of the service. */
static int choose(struct search *s, struct candidate *out, struct err *e)
{
	const struct candidate *best = NULL;
	int best_rank = OTHER;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		int r = rank(&s->all[i], s->who);

		if (r > best_rank) {
			best = &s->all[i];
			best_rank = r;
			n = 1;
		} else if (r == best_rank) {
			n++;
		}
	}
	if (!best || (n > 1 && best_rank == BEGIN_OF_ID))
		return none_or_many(s, best, best ? n : 0, e);
	for (size_t i = 0; i < s->n; i++)
		s->all[i].meant = best_rank == SERVICE ? rank(&s->all[i], s->who) == SERVICE :
							 &s->all[i] == best;
	*out = *best;
	return 0;
}

/* Does the last part of the path name a wanted container? Then everything below belongs to it. */
static bool is_meant(void *ctx, const char *path, size_t len)
{
	const struct search *s = ctx;
	struct container_ref ref;

	if (!container_parse(path, len, &ref) || ref.end != len)
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].meant && !strcmp(ref.id, s->all[i].ref.id))
			return true;
	return false;
}

int container_resolve(const char *who, struct container_found *out, struct err *e)
{
	struct search s = {.who = who};
	struct candidate c;
	struct hierarchies h;
	int rc;

	find_hierarchies(&h);
	walk(h.v2, true, collect, &s, NULL);
	walk(h.v1, false, collect, &s, NULL);
	rc = choose(&s, &c, e);
	if (!rc) {
		*out = (struct container_found){.ref = c.ref};
		snprintf(out->name, sizeof(out->name), "%s", c.name);
		walk(h.v2, true, is_meant, &s, out);
		walk(h.v1, false, is_meant, &s, out);
	}
	free(s.all);
	return rc;
}

void container_each(void (*each)(void *ctx, const struct container_ref *ref, const char *name),
		    void *ctx)
{
	struct search s = {.who = ""};
	struct hierarchies h;

	find_hierarchies(&h);
	walk(h.v2, true, collect, &s, NULL);
	walk(h.v1, false, collect, &s, NULL);
	for (size_t i = 0; i < s.n; i++)
		each(ctx, &s.all[i].ref,
		     container_named_by_path(&s.all[i].ref) ? s.all[i].ref.id : s.all[i].name);
	free(s.all);
}

/* ---- paths ---- */

/* Path below the mount point, if it lies there. */
static const char *below(const char *mount, const char *path)
{
	size_t n = strlen(mount);

	if (!n || strncmp(path, mount, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path + n;
}

/* ---- a cgroup by id ---- */

#ifndef FILEID_KERNFS
#define FILEID_KERNFS 0xfe
#endif

static int path_by_handle(const char *mount, uint64_t id, char out[PATH_MAX])
{
	struct {
		struct file_handle h;
		uint64_t id;
	} handle = {.h = {.handle_bytes = sizeof(uint64_t), .handle_type = FILEID_KERNFS}};
	cleanup_fd int dir = -1, fd = -1;
	char link[64], target[PATH_MAX];
	const char *rel;
	ssize_t n;

	if (!mount[0] || !id)
		return -ENOENT;
	dir = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	memcpy(handle.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(dir, &handle.h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	rel = below(mount, target);
	if (!rel)
		return -ENOENT;
	memcpy(out, rel, strlen(rel) + 1);
	return 0;
}

int container_cgroup_path(uint64_t cgroup_id, uint64_t v1_id, char *out, size_t size)
{
	char text[2][PATH_MAX];
	const char *paths[2] = {text[0], text[1]};
	size_t lens[2] = {0}, i;
	struct hierarchies h;
	int rc;

	find_hierarchies(&h);
	rc = path_by_handle(h.v2, cgroup_id, text[0]);
	if (!rc)
		lens[0] = strlen(text[0]);
	if (!path_by_handle(h.v1, v1_id, text[1])) {
		lens[1] = strlen(text[1]);
		rc = 0;
	}
	i = container_choose(paths, lens, 2);
	if (!rc && i < 2 && lens[i] >= size)
		rc = -ENOENT;
	if (!rc)
		snprintf(out, size, "%s", i < 2 ? paths[i] : "");
	return rc;
}
