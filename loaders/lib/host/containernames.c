/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/containernames.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define FILE_MAX (4u << 20)
#define NAMESPACES_MAX 64
#define NAME_MAX_ 1024

static char *copy(const json_t *value)
{
	const char *s = json_string_value(value);

	return s && *s ? mem_strndup(s, strlen(s) < NAME_MAX_ ? strlen(s) : NAME_MAX_) : NULL;
}

/* ---- Podman and CRI-O ---- */

/* JSON within JSON; whatever else it is, there is no image's name in it. */
static char *image_of(const json_t *entry)
{
	const char *text = json_string_value(json_object_get(entry, "metadata"));
	json_t *meta = text ? json_loads(text, 0, NULL) : NULL;
	char *name = copy(json_object_get(meta, "image-name"));

	json_decref(meta);
	return name;
}

int containernames_parse_storage(const char *json, size_t len, const char *id, struct container_names *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL), *entry;
	int rc = json_is_array(root) ? -ENOENT : -EBADMSG;
	size_t i;

	json_array_foreach(root, i, entry) {
		const char *its = json_string_value(json_object_get(entry, "id"));

		if (!its || strcmp(its, id))
			continue;
		*out = (struct container_names){.name = copy(json_array_get(json_object_get(entry, "names"), 0)),
						.image = image_of(entry)};
		rc = 0;
		break;
	}
	json_decref(root);
	return rc;
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
		rc = container_read_file(path, FILE_MAX, &json, &len);
		if (!rc)
			rc = containernames_parse_storage(json, len, id, out);
	}
	return rc;
}

/* ---- containerd ---- */

int containernames_parse_bundle(const char *json, size_t len, struct container_names *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL), *notes = json_object_get(root, "annotations");
	const char *pod = json_string_value(json_object_get(notes, "io.kubernetes.cri.sandbox-name"));
	char *name = copy(json_object_get(notes, "io.kubernetes.cri.container-name")), both[2 * NAME_MAX_];

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	if (name && pod && *pod) {
		snprintf(both, sizeof(both), "%.500s/%.500s", pod, name);
		free(name);
		name = mem_strdup(both);
	}
	if (!name)
		name = copy(json_object_get(notes, "nerdctl/name"));
	if (name)
		*out = (struct container_names){.name = name, .project = copy(json_object_get(notes, "io.kubernetes.cri.sandbox-name")),
						.image = copy(json_object_get(notes, "io.kubernetes.cri.image-name"))};
	json_decref(root);
	return name ? 0 : -ENOENT;
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
		if (!container_read_file(path, FILE_MAX, &json, &len))
			rc = containernames_parse_bundle(json, len, out);
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
	return container_docker(docker_root, ref->id, out);
}
