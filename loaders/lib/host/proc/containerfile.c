/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/containerfile.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"

#define NAME_MAX_ 1024
#define NEVER     "0001-01-01T" /* Go's zero time: Docker has not recorded a start yet */

static char *copy(const json_t *value)
{
	const char *s = json_string_value(value);

	return s && *s ? mem_strndup(s, strlen(s) < NAME_MAX_ ? strlen(s) : NAME_MAX_) : NULL;
}

/* ---- labels ---- */

static char *copy_either(const json_t *labels, const char *key, const char *other)
{
	char *first = copy(json_object_get(labels, key));

	return first ? first : copy(json_object_get(labels, other));
}

static void take_labels(const json_t *labels, struct container_names *out)
{
	char *text =
		json_object_size(labels) ? json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	out->project =
		copy_either(labels, "com.docker.compose.project", "io.podman.compose.project");
	out->service =
		copy_either(labels, "com.docker.compose.service", "io.podman.compose.service");
	if (text && strlen(text) <= CONTAINER_LABELS_MAX)
		out->labels = mem_strdup(text);
	free(text);
}

/* ---- Docker ---- */

int containerfile_docker(const char *json, size_t len, struct container_names *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL),
	       *conf = json_object_get(root, "Config");
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

static void put(const json_t *value, char *out, size_t size)
{
	const char *s = json_string_value(value);

	snprintf(out, size, "%s", s ? s : "");
	for (char *c = out; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
}

static void health_read(const json_t *health, struct container_state *out)
{
	const json_t *log = json_object_get(health, "Log"),
		     *last = json_array_get(log,
					    json_array_size(log) ? json_array_size(log) - 1 : 0);

	put(json_object_get(health, "Status"), out->health, sizeof(out->health));
	if (json_integer_value(json_object_get(last, "ExitCode")))
		put(json_object_get(last, "Output"), out->said, sizeof(out->said));
}

int containerfile_state(const char *json, size_t len, struct container_state *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL),
	       *state = json_object_get(root, "State");
	struct container_state s = {0};
	json_int_t restarts, code;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	put(json_object_get(root, "Name"), s.name, sizeof(s.name));
	if (s.name[0] == '/')
		memmove(s.name, s.name + 1, strlen(s.name));
	put(json_object_get(json_object_get(root, "Config"), "Image"), s.image, sizeof(s.image));
	put(json_object_get(root, "Created"), s.created, sizeof(s.created));
	put(json_object_get(state, "StartedAt"), s.started, sizeof(s.started));
	put(json_object_get(state, "FinishedAt"), s.finished, sizeof(s.finished));
	health_read(json_object_get(state, "Health"), &s);
	restarts = json_integer_value(json_object_get(root, "RestartCount"));
	code = json_integer_value(json_object_get(state, "ExitCode"));
	s.restarts = restarts > 0 && restarts <= INT32_MAX ? (uint32_t)restarts : 0;
	s.exit_code = code >= -255 && code <= 255 ? (int)code : 0;
	s.runs = json_is_true(json_object_get(state, "Running"));
	s.oom_killed = json_is_true(json_object_get(state, "OOMKilled"));
	json_decref(root);
	*out = s;
	return 0;
}

/* After the seconds: a fraction, then the zone. */
static bool zone_read(const char *p, int64_t *ns)
{
	int hours, minutes, used = 0;
	int64_t digit = 100000000;
	char sign;

	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9'; p++, digit /= 10)
			*ns += (*p - '0') * digit;
	if (!strcmp(p, "Z"))
		return true;
	if (sscanf(p, "%c%2d:%2d%n", &sign, &hours, &minutes, &used) != 3 || p[used] ||
	    (sign != '+' && sign != '-') || hours > 14 || minutes > 59)
		return false;
	*ns -= (sign == '-' ? -1 : 1) * (hours * 3600ll + minutes * 60ll) * 1000000000;
	return true;
}

bool containerfile_time(const char *text, int64_t *out_ns)
{
	struct tm tm = {0};
	int64_t ns = 0;
	int used = 0;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used) != 6 ||
	    tm.tm_year < 1970 || tm.tm_year > 2200 || !zone_read(text + used, &ns))
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*out_ns = (int64_t)timegm(&tm) * 1000000000 + ns;
	return true;
}

int containerfile_podman_event(const char *json, size_t len, struct container_happened *out)
{
	json_t *root = json_loadb(json, len, 0, NULL);
	const char *type = json_string_value(json_object_get(root, "Type")),
		   *time = json_string_value(json_object_get(root, "Time"));
	struct container_happened x = {0};
	json_int_t code;
	int rc = -EBADMSG;

	if (type && strcmp(type, "container") != 0)
		rc = -ENOENT;
	else if (type && time && containerfile_time(time, &x.at_ns))
		rc = 0;
	put(json_object_get(root, "ID"), x.id, sizeof(x.id));
	put(json_object_get(root, "Name"), x.name, sizeof(x.name));
	put(json_object_get(root, "Image"), x.image, sizeof(x.image));
	put(json_object_get(root, "Status"), x.status, sizeof(x.status));
	put(json_object_get(root, "health_status"), x.health, sizeof(x.health));
	if (!*x.health)
		put(json_object_get(root, "HealthStatus"), x.health, sizeof(x.health));
	code = json_integer_value(json_object_get(root, "ContainerExitCode"));
	x.exit_code = code >= -255 && code <= 255 ? (int)code : 0;
	json_decref(root);
	if (!rc && (strspn(x.id, "0123456789abcdef") != 64 || !*x.status))
		rc = -EBADMSG;
	if (!rc)
		*out = x;
	return rc;
}

/* ---- Podman and CRI-O ---- */

/* JSON within JSON; if it is anything else it has no image name. */
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

	json_array_foreach (root, i, entry) {
		const char *its = json_string_value(json_object_get(entry, "id"));

		if (!its || strcmp(its, id))
			continue;
		*out = (struct container_names){
			.name = copy(json_array_get(json_object_get(entry, "names"), 0)),
			.image = image_of(entry)};
		rc = 0;
		break;
	}
	json_decref(root);
	return rc;
}

/* ---- OCI bundles ---- */

/* Labels that runtimes and the kubelet write for themselves; and `kubectl apply`'s copy, which may
 * contain secrets. */
static bool is_runtimes_own(const char *key)
{
	static const char *const own[] = {
		"io.kubernetes.", "kubectl.kubernetes.io/", "nerdctl/", "io.podman.annotations.",
		"io.container.",  "io.containerd.",         "run.oci.", "org.systemd."};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strncmp(key, own[i], strlen(own[i])))
			return true;
	return false;
}

/* CRI-O has the labels in one annotation; otherwise the user's annotations. */
static json_t *labels_of(const json_t *notes)
{
	const char *text = json_string_value(json_object_get(notes, "io.kubernetes.cri-o.Labels")),
		   *key;
	json_t *labels = text ? json_loads(text, 0, NULL) : json_object();
	json_t *value;

	if (!text)
		json_object_foreach ((json_t *)(uintptr_t)notes, key, value)
			if (!is_runtimes_own(key) && json_is_string(value))
				json_object_set(labels, key, value);
	return labels;
}

/* "pod/container" */
static char *name_in_pod(const json_t *notes, const char *pod)
{
	char *name = copy_either(notes, "io.kubernetes.cri.container-name",
				 "io.kubernetes.container.name");
	char both[2 * NAME_MAX_];

	if (!name || !pod)
		return name;
	snprintf(both, sizeof(both), "%.500s/%.500s", pod, name);
	free(name);
	return mem_strdup(both);
}

static void take_notes(const json_t *notes, struct container_names *out)
{
	char *pod = copy_either(notes, "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name");
	json_t *labels = labels_of(notes);

	take_labels(labels, out);
	json_decref(labels);
	out->name = name_in_pod(notes, pod);
	if (!out->name)
		out->name = copy_either(notes, "nerdctl/name", "io.kubernetes.cri-o.Name");
	out->image =
		copy_either(notes, "io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName");
	if (out->project)
		free(pod);
	else
		out->project = pod;
}

int containerfile_bundle(const char *json, size_t len, struct container_names *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL);
	struct container_names found = {0};
	bool any;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	take_notes(json_object_get(root, "annotations"), &found);
	json_decref(root);
	any = found.name || found.image || found.project || found.labels;
	if (any)
		*out = found;
	return any ? 0 : -ENOENT;
}

/* ---- /etc/passwd: "name:x:1000:1000:gecos:/home/name:/bin/sh" ---- */

static bool home_of(const char *line, size_t len, uint32_t uid, char *out, size_t size)
{
	const char *field = line, *end = line + len, *colon;
	char number[12];

	for (int i = 0; i < 5; i++, field = colon + 1) {
		colon = memchr(field, ':', (size_t)(end - field));
		if (!colon)
			return false;
		snprintf(number, sizeof(number), "%u", uid);
		if (i == 2 && ((size_t)(colon - field) != strlen(number) ||
			       memcmp(field, number, strlen(number))))
			return false;
	}
	colon = memchr(field, ':', (size_t)(end - field));
	if (!colon || *field != '/' || (size_t)(colon - field) >= size ||
	    memchr(field, 0, (size_t)(colon - field)))
		return false;
	snprintf(out, size, "%.*s", (int)(colon - field), field);
	return true;
}

int containerfile_home(const char *passwd, size_t len, uint32_t uid, char *out, size_t size)
{
	for (size_t pos = 0; pos < len;) {
		const char *line = passwd + pos, *nl = memchr(line, '\n', len - pos);
		size_t n = nl ? (size_t)(nl - line) : len - pos;

		if (home_of(line, n, uid, out, size))
			return 0;
		pos += n + 1;
	}
	return -ENOENT;
}
