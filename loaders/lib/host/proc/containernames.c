/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/containernames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/containerfile.h"
#include "loaders/lib/host/proc/engines.h"
#include "loaders/lib/host/proc/openin.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define FILE_MAX       (4u << 20)
#define NAMESPACES_MAX 64

void container_names_release(struct container_names *n)
{
	free(n->name);
	free(n->image);
	free(n->project);
	free(n->service);
	free(n->labels);
	free(n->started);
	free(n->file);
	*n = (struct container_names){0};
}

static char *dup_or_null(const char *s)
{
	return s ? mem_strdup(s) : NULL;
}

void container_names_copy(struct container_names *out, const struct container_names *n)
{
	*out = (struct container_names){.name = dup_or_null(n->name),
					.image = dup_or_null(n->image),
					.project = dup_or_null(n->project),
					.service = dup_or_null(n->service),
					.labels = dup_or_null(n->labels),
					.started = dup_or_null(n->started),
					.file = dup_or_null(n->file),
					.restarts = n->restarts};
}

static bool same(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

bool container_names_same(const struct container_names *a, const struct container_names *b)
{
	return same(a->name, b->name) && same(a->image, b->image) && same(a->project, b->project) &&
	       same(a->service, b->service) && same(a->labels, b->labels) &&
	       same(a->started, b->started) && a->restarts == b->restarts;
}

/* ---- where the files lie ---- */

/* Root's files: a regular file, not a link, of at most FILE_MAX bytes. */
static int read_file(const char *path, char **out, size_t *len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > FILE_MAX)
		return -EFBIG;
	return openin_read(fd, (size_t)st.st_size, out, len);
}

/* Below a root that is not ours, or a user's folder: the content of the path is untrusted. Opens
 * without blocking, and only a file of that owner. root_fd -1: our root. */
static int read_owned(int root_fd, const char *path, uint32_t owner, char **out, size_t *len)
{
	cleanup_fd int root = root_fd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1,
		       fd = -1;
	struct stat st;

	if (root < 0 && root_fd < 0)
		return -errno;
	fd = openin(root_fd < 0 ? root : root_fd, path, FILE_MAX, &st);
	if (fd < 0)
		return fd;
	return st.st_uid == owner ? openin_read(fd, (size_t)st.st_size, out, len) : -EPERM;
}

/* Where a container's runtime keeps its files. */
struct runtime_files {
	const char *docker_root, *root, *id;
	uint32_t owner;
	char home[512];  /* the owner's, "" if none or unknown */
	int engine_root; /* the paths are an engine's, below this root; -1: ours */
	uint32_t engine; /* that engine's process */
	bool waits;      /* opening one of the owner's files timed out: try no other */
};

static char *below_root(uint32_t pid, const char *path)
{
	char full[1300];

	snprintf(full, sizeof(full), "/proc/%u/root%s", pid, path);
	return mem_strdup(full);
}

/* Read and parse: 0 and *out, or -errno. */
static int try_file(struct runtime_files *p, const char *path,
		    int (*parse)(const char *, size_t, const char *, struct container_names *),
		    struct container_names *out)
{
	cleanup_free char *json = NULL;
	size_t len;
	int rc = -ETIMEDOUT;

	if (!p->waits)
		rc = p->owner || p->engine_root >= 0 ?
			     read_owned(p->engine_root, path, p->owner, &json, &len) :
			     read_file(path, &json, &len);
	p->waits |= rc == -ETIMEDOUT;
	if (!rc)
		rc = parse(json, len, p->id, out);
	if (!rc && out->name && !p->owner)
		out->file = p->engine_root < 0 ? mem_strdup(path) : below_root(p->engine, path);
	return rc;
}

static int parse_docker(const char *json, size_t len, const char *id, struct container_names *out)
{
	(void)id;
	return containerfile_docker(json, len, out);
}

static int parse_bundle(const char *json, size_t len, const char *id, struct container_names *out)
{
	(void)id;
	return containerfile_bundle(json, len, out);
}

static int find_in_docker(struct runtime_files *p, struct container_names *out)
{
	char roots[2][600], path[1200];
	int rc = -ENOENT;

	snprintf(roots[0], sizeof(roots[0]), "%.511s%s", p->owner ? p->home : p->docker_root,
		 p->owner ? "/.local/share/docker" : "");
	snprintf(roots[1], sizeof(roots[1]), "%.512s/var/snap/docker/common/var-lib-docker",
		 p->root);
	for (size_t i = 0; rc == -ENOENT && i < (p->owner ? 1 : 2); i++) {
		snprintf(path, sizeof(path), "%.600s/containers/%.128s/config.v2.json", roots[i],
			 p->id);
		rc = try_file(p, path, parse_docker, out);
	}
	return rc;
}

/* ---- Podman and CRI-O ---- */

static void fill(char **to, char **from)
{
	if (!*to) {
		*to = *from;
		*from = NULL;
	}
}

/* Add what the bundle knows. In a pod the container's name there counts, not the storage's. */
static void add_bundle(struct runtime_files *p, const char *dir, struct container_names *out)
{
	struct container_names more = {0};
	char path[1200];

	snprintf(path, sizeof(path), "%s/%s/userdata/config.json", dir, p->id);
	if (try_file(p, path, parse_bundle, &more))
		return;
	if (more.name) {
		free(out->name);
		out->name = NULL;
		free(out->file);
		out->file = NULL;
	}
	fill(&out->file, &more.file);
	fill(&out->name, &more.name);
	fill(&out->image, &more.image);
	fill(&out->project, &more.project);
	fill(&out->service, &more.service);
	fill(&out->labels, &more.labels);
	container_names_release(&more);
}

static int find_in_storage_folder(struct runtime_files *p, const char *dir,
				  struct container_names *out)
{
	static const char *const files[] = {"containers.json", "volatile-containers.json"};
	char path[1024];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		if (try_file(p, path, containerfile_storage, out))
			continue;
		add_bundle(p, dir, out);
		return 0;
	}
	return -ENOENT;
}

static int find_in_storage(struct runtime_files *p, struct container_names *out)
{
	static const char *const drivers[] = {"overlay", "vfs", "btrfs", "zfs"};
	int rc = -ENOENT;
	char dir[700];

	for (size_t i = 0; rc && i < ARRAY_SIZE(drivers); i++) {
		snprintf(dir, sizeof(dir), "%.512s%s/containers/storage/%s-containers",
			 p->owner ? p->home : p->root, p->owner ? "/.local/share" : "/var/lib",
			 drivers[i]);
		rc = find_in_storage_folder(p, dir, out);
	}
	return rc;
}

/* ---- containerd ---- */

#define TASKS "io.containerd.runtime.v2.task"

/* A bundle in one of the namespaces that engines use. Does not list a user's folder: its owner
 * could make that block. */
static int find_in_usual_namespaces(struct runtime_files *p, const char *tasks,
				    struct container_names *out)
{
	static const char *const namespaces[] = {"default", "k8s.io", "buildkit", "moby"};
	int rc = -ENOENT;

	for (size_t i = 0; rc && i < ARRAY_SIZE(namespaces); i++) {
		char path[1024];

		snprintf(path, sizeof(path), "%.700s/%s/%.128s/config.json", tasks, namespaces[i],
			 p->id);
		rc = try_file(p, path, parse_bundle, out);
	}
	return rc;
}

static int find_in_namespaces(struct runtime_files *p, const char *base,
			      struct container_names *out)
{
	cleanup_dir DIR *d = opendir(base);
	const struct dirent *de;
	int rc = -ENOENT, n = 0;
	char path[1200];

	while (rc && d && n++ < NAMESPACES_MAX && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%.128s/config.json", base, de->d_name, p->id);
		rc = try_file(p, path, parse_bundle, out);
	}
	return rc;
}

static int find_in_bundles(struct runtime_files *p, struct container_names *out)
{
	static const char *const states[] = {"/run/containerd", "/run/k3s/containerd",
					     "/run/k0s/containerd",
					     "/var/snap/microk8s/common/run/containerd"};
	char base[700];
	int rc = -ENOENT;

	if (p->owner) {
		snprintf(base, sizeof(base), "%.512s/run/user/%u/containerd/" TASKS, p->root,
			 p->owner);
		return find_in_usual_namespaces(p, base, out);
	}
	for (size_t i = 0; rc && i < ARRAY_SIZE(states); i++) {
		snprintf(base, sizeof(base), "%.512s%s/" TASKS, p->root, states[i]);
		rc = find_in_namespaces(p, base, out);
	}
	return rc;
}

/* The home of a user of this host. */
static void find_home(struct runtime_files *p)
{
	cleanup_free char *passwd = NULL;
	char path[600], home[256];
	size_t len;

	snprintf(path, sizeof(path), "%.512s/etc/passwd", p->root);
	if (!read_file(path, &passwd, &len) &&
	    !containerfile_home(passwd, len, p->owner, home, sizeof(home)))
		snprintf(p->home, sizeof(p->home), "%.250s%s", p->root, home);
}

static int find_here(struct runtime_files *p, const char *runtime, struct container_names *out)
{
	if (p->owner && !*p->home && strcmp(runtime, "containerd") != 0)
		return -ENOENT;
	if (!strcmp(runtime, "podman") || !strcmp(runtime, "cri-o"))
		return find_in_storage(p, out);
	return !strcmp(runtime, "containerd") ? find_in_bundles(p, out) : find_in_docker(p, out);
}

/* ---- where an engine that runs has put them ---- */

static int try_engine(struct runtime_files *p, const char *runtime, const struct engine *e,
		      struct container_names *out)
{
	char path[1024];

	switch (e->kind) {
	case ENGINE_DOCKER:
		snprintf(path, sizeof(path), "%.512s/containers/%.128s/config.v2.json",
			 *e->folder ? e->folder : "/var/lib/docker", p->id);
		return strcmp(runtime, "docker") ? -ENOENT : try_file(p, path, parse_docker, out);
	case ENGINE_STORAGE:
		return strcmp(runtime, "podman") && strcmp(runtime, "cri-o") ?
			       -ENOENT :
			       find_in_storage_folder(p, e->folder, out);
	case ENGINE_CONTAINERD:
		snprintf(path, sizeof(path), "%.512s/%.128s/config.json", e->folder, p->id);
		return strcmp(runtime, "containerd") ? -ENOENT :
						       try_file(p, path, parse_bundle, out);
	}
	return -ENOENT;
}

static int find_by_known_engines(struct runtime_files *p, const char *runtime,
				 struct container_names *out)
{
	struct engine all[ENGINES_MAX];
	size_t n = engines_known(all);
	int rc = -ENOENT;

	for (size_t i = 0; i < n && rc; i++)
		if (all[i].uid == p->owner && (p->engine_root = openin_root(all[i].pid)) >= 0) {
			p->engine = all[i].pid;
			rc = try_engine(p, runtime, &all[i], out);
			close(p->engine_root);
		}
	p->engine_root = -1;
	return rc;
}

/* Scanning all processes is expensive: only for what the engines found before do not know. */
static int find_by_engines(struct runtime_files *p, const char *runtime,
			   struct container_names *out)
{
	int rc = find_by_known_engines(p, runtime, out);

	return rc && engines_look_again() ? find_by_known_engines(p, runtime, out) : rc;
}

int containernames_find(const char *docker_root, const char *root, const struct container_ref *ref,
			struct container_names *out)
{
	struct runtime_files p = {.docker_root = docker_root,
				  .root = root,
				  .id = ref->id,
				  .owner = ref->owner,
				  .engine_root = -1};
	size_t n = strlen(ref->id);
	int rc;

	if (!n || strspn(ref->id, "0123456789abcdef") != n)
		return -ENOENT; /* an id that is a name needs no other; and no path is built from
				   anything else */
	if (p.owner)
		find_home(&p);
	for (;;) {
		rc = find_here(&p, ref->runtime, out);
		if (rc && !*root)
			rc = find_by_engines(&p, ref->runtime, out);
		if (!rc || !p.owner)
			return rc;
		p.owner = 0; /* root's engine may put its containers under a user's slice */
		p.waits = false;
	}
}

const char *containernames_docker_root(void)
{
	static char root[512];
	cleanup_free char *json = NULL;
	json_t *conf;
	const char *dir;
	size_t len;

	if (root[0])
		return root;
	snprintf(root, sizeof(root), "/var/lib/docker");
	if (read_file("/etc/docker/daemon.json", &json, &len))
		return root;
	conf = json_loadb(json, len, 0, NULL);
	dir = json_string_value(json_object_get(conf, "data-root"));
	if (dir && dir[0] == '/' && strlen(dir) < sizeof(root))
		snprintf(root, sizeof(root), "%s", dir);
	json_decref(conf);
	return root;
}
