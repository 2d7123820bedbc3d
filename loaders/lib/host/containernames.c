/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/containernames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loaders/lib/host/containerfile.h"
#include "loaders/lib/host/openin.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define FILE_MAX (4u << 20)
#define NAMESPACES_MAX 64

void container_names_release(struct container_names *n)
{
	free(n->name);
	free(n->image);
	free(n->project);
	free(n->service);
	free(n->labels);
	free(n->started);
	*n = (struct container_names){0};
}

static char *dup_or_null(const char *s)
{
	return s ? mem_strdup(s) : NULL;
}

void container_names_copy(struct container_names *out, const struct container_names *n)
{
	*out = (struct container_names){.name = dup_or_null(n->name), .image = dup_or_null(n->image),
					.project = dup_or_null(n->project), .service = dup_or_null(n->service),
					.labels = dup_or_null(n->labels), .started = dup_or_null(n->started),
					.restarts = n->restarts};
}

static bool same(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

bool container_names_same(const struct container_names *a, const struct container_names *b)
{
	return same(a->name, b->name) && same(a->image, b->image) && same(a->project, b->project) &&
	       same(a->service, b->service) && same(a->labels, b->labels) && same(a->started, b->started) &&
	       a->restarts == b->restarts;
}

/* ---- where the files lie ---- */

/* All of a regular file, which is no link and has at most `max` bytes. */
static int read_file(const char *path, size_t max, char **out, size_t *len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	return openin_read(fd, (size_t)st.st_size, out, len);
}

static int find_in_docker(const char *docker_root, const char *id, struct container_names *out)
{
	cleanup_free char *json = NULL;
	char path[1024];
	size_t len;
	int rc;

	if ((size_t)snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", docker_root, id) >= sizeof(path))
		return -ENAMETOOLONG;
	rc = read_file(path, FILE_MAX, &json, &len);
	return rc ? rc : containerfile_docker(json, len, out);
}

static int find_in_storage(const char *root, const char *id, struct container_names *out)
{
	static const char *const files[] = {"containers.json", "volatile-containers.json"};
	int rc = -ENOENT;

	for (size_t i = 0; rc && i < sizeof(files) / sizeof(files[0]); i++) {
		cleanup_free char *json = NULL;
		char path[1024];
		size_t len;

		snprintf(path, sizeof(path), "%.512s/var/lib/containers/storage/overlay-containers/%s", root, files[i]);
		rc = read_file(path, FILE_MAX, &json, &len);
		if (!rc)
			rc = containerfile_storage(json, len, id, out);
	}
	return rc;
}

static int find_in_bundles(const char *root, const char *id, struct container_names *out)
{
	char base[600], path[1200];
	cleanup_dir DIR *d = NULL;
	const struct dirent *de;
	int rc = -ENOENT, n = 0;

	snprintf(base, sizeof(base), "%.512s/run/containerd/io.containerd.runtime.v2.task", root);
	d = opendir(base);
	while (rc && d && n++ < NAMESPACES_MAX && (de = readdir(d))) {
		cleanup_free char *json = NULL;
		size_t len;

		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%.128s/config.json", base, de->d_name, id);
		if (!read_file(path, FILE_MAX, &json, &len))
			rc = containerfile_bundle(json, len, out);
	}
	return rc;
}

int containernames_find(const char *docker_root, const char *root, const struct container_ref *ref,
			struct container_names *out)
{
	size_t n = strlen(ref->id);

	if (!n || strspn(ref->id, "0123456789abcdef") != n)
		return -ENOENT; /* what has a name for an id needs none; and no path is made of anything else */
	if (!strcmp(ref->runtime, "podman") || !strcmp(ref->runtime, "cri-o"))
		return find_in_storage(root, ref->id, out);
	if (!strcmp(ref->runtime, "containerd"))
		return find_in_bundles(root, ref->id, out);
	return find_in_docker(docker_root, ref->id, out);
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
	if (read_file("/etc/docker/daemon.json", FILE_MAX, &json, &len))
		return root;
	conf = json_loadb(json, len, 0, NULL);
	dir = json_string_value(json_object_get(conf, "data-root"));
	if (dir && dir[0] == '/' && strlen(dir) < sizeof(root))
		snprintf(root, sizeof(root), "%s", dir);
	json_decref(conf);
	return root;
}
