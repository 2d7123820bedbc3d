/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/containerfile.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define NAME_MAX_ 1024
#define NEVER     "0001-01-01T" /* Go's zero time: Docker has not written yet that it is started */

static char *copy(const json_t *value)
{
	const char *s = json_string_value(value);

	return s && *s ? mem_strndup(s, strlen(s) < NAME_MAX_ ? strlen(s) : NAME_MAX_) : NULL;
}

/* ---- Docker ---- */

static void take_labels(const json_t *labels, struct container_names *out)
{
	char *text = json_object_size(labels) ? json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	out->project = copy(json_object_get(labels, "com.docker.compose.project"));
	out->service = copy(json_object_get(labels, "com.docker.compose.service"));
	if (text && strlen(text) <= CONTAINER_LABELS_MAX)
		out->labels = mem_strdup(text);
	free(text);
}

int containerfile_docker(const char *json, size_t len, struct container_names *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL), *conf = json_object_get(root, "Config");
	json_int_t restarts = json_integer_value(json_object_get(root, "RestartCount"));
	char *name;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	name = copy(json_object_get(root, "Name"));
	if (name && name[0] == '/')
		memmove(name, name + 1, strlen(name));
	out->name = name;
	out->image = copy(json_object_get(conf, "Image"));
	out->started = copy(json_object_get(json_object_get(root, "State"), "StartedAt"));
	if (out->started && !strncmp(out->started, NEVER, strlen(NEVER))) {
		free(out->started);
		out->started = NULL;
	}
	out->restarts = restarts > 0 && restarts <= INT32_MAX ? (uint32_t)restarts : 0;
	take_labels(json_object_get(conf, "Labels"), out);
	json_decref(root);
	return 0;
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

int containerfile_storage(const char *json, size_t len, const char *id, struct container_names *out)
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

/* ---- OCI bundles ---- */

int containerfile_bundle(const char *json, size_t len, struct container_names *out)
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
