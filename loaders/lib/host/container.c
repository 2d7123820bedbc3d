/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: a path is walked component by component; each is tried against the forms of the header, given the one
 * before it. The last that matches wins, so that the innermost container is the one taken.
 */
#include "loaders/lib/host/container.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/openin.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define JSON_MAX (4u << 20)
#define NEVER    "0001-01-01T" /* Go's zero time: Docker has not written yet that it is started */

struct part {
	const char *p;
	size_t n;
};

static bool part_is(struct part c, const char *s)
{
	return c.n == strlen(s) && !memcmp(c.p, s, c.n);
}

static bool part_begins(struct part c, const char *s)
{
	return c.n > strlen(s) && !memcmp(c.p, s, strlen(s));
}

static bool part_ends(struct part c, const char *s)
{
	return c.n > strlen(s) && !memcmp(c.p + c.n - strlen(s), s, strlen(s));
}

static struct part part_inner(struct part c, const char *prefix, const char *suffix)
{
	c.p += strlen(prefix);
	c.n -= strlen(prefix);
	if (part_ends(c, suffix))
		c.n -= strlen(suffix);
	return c;
}

static bool is_id(struct part c)
{
	if (c.n != 64 && c.n != 32)
		return false;
	for (size_t i = 0; i < c.n; i++)
		if (!((c.p[i] >= '0' && c.p[i] <= '9') || (c.p[i] >= 'a' && c.p[i] <= 'f')))
			return false;
	return true;
}

/* systemd writes bytes it does not like in unit names as \xNN */
static void copy_unescaped(struct part c, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < c.n && n + 1 < size; i++) {
		unsigned int v;
		char hex[3] = {0};

		if (c.n - i > 3 && c.p[i] == '\\' && c.p[i + 1] == 'x' && strspn((memcpy(hex, c.p + i + 2, 2), hex), "0123456789abcdef") == 2) {
			v = (unsigned int)strtoul(hex, NULL, 16);
			out[n++] = v ? (char)v : '?';
			i += 3;
		} else {
			out[n++] = c.p[i];
		}
	}
	out[n] = 0;
}

/* ---- one component ---- */

struct form {
	const char *prefix, *runtime;
	bool named; /* what follows is a name, not an id */
};

static const struct form forms[] = {
	{"docker-", "docker", false},          {"cri-containerd-", "containerd", false},
	{"crio-", "cri-o", false},             {"libpod-", "podman", false},
	{"libpod-payload-", "podman", false},
	{"nerdctl-", "containerd", false},     {"containerd-", "containerd", false},
	{"buildkit-", "buildkit", false},      {"lxc.payload.", "lxc", true},
	{"systemd-nspawn@", "nspawn", true},   {"machine-", "nspawn", true}};

static const char *parent_runtime(struct part parent, bool pod)
{
	if (part_is(parent, "docker"))
		return "docker";
	if (part_is(parent, "default") || part_is(parent, "k8s.io") || part_is(parent, "moby") || pod)
		return part_is(parent, "moby") ? "docker" : "containerd";
	if (part_is(parent, "libpod_parent"))
		return "podman";
	if (part_is(parent, "buildkit"))
		return "buildkit";
	return "container";
}

static bool take(struct container_ref *out, const char *runtime, struct part id, bool named)
{
	if (named ? !id.n : !is_id(id))
		return false;
	out->runtime = runtime;
	if (named) {
		copy_unescaped(id, out->id, sizeof(out->id));
	} else {
		memcpy(out->id, id.p, id.n);
		out->id[id.n] = 0;
	}
	return true;
}

static bool take_prefixed(struct part c, struct container_ref *out)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		const struct form *f = &forms[i];
		struct part id;

		if (!part_begins(c, f->prefix))
			continue;
		id = part_inner(c, f->prefix, f->named ? (part_ends(c, ".service") ? ".service" : ".scope") : ".scope");
		/* machine-qemu\x2d3\x2dname.scope is a virtual machine, no container */
		if (f->named && !strcmp(f->prefix, "machine-") &&
		    (!part_ends(c, ".scope") || part_begins(id, "qemu") || part_begins(id, "lxc\\x2d")))
			return false;
		if (take(out, f->runtime, id, f->named))
			return true;
	}
	return false;
}

/* "kubepods-burstable-pod1234_5678.slice:cri-containerd:ID" */
static bool take_colons(struct part c, struct container_ref *out)
{
	const char *last = memrchr(c.p, ':', c.n);

	if (!last)
		return false;
	return take(out, memmem(c.p, c.n, ":crio:", 6) ? "cri-o" : memmem(c.p, c.n, ":docker:", 8) ? "docker" : "containerd",
		    (struct part){last + 1, c.n - (size_t)(last + 1 - c.p)}, false);
}

static bool take_container(struct part c, struct part parent, bool pod, struct container_ref *out)
{
	const char *runtime;

	if (take_prefixed(c, out) || take_colons(c, out))
		return true;
	if (part_is(parent, "lxc") || part_is(parent, "lxc.payload"))
		return take(out, "lxc", c, true);
	runtime = parent_runtime(parent, pod);
	if (!strcmp(runtime, "container") && c.n != 64)
		return false; /* 32 hex digits alone may be anything */
	return take(out, runtime, c, false);
}

/* "pod0a1b-..." under kubepods, "kubepods-besteffort-pod0a1b_2c.slice" with systemd's names */
static void take_pod(struct part c, struct container_ref *out)
{
	const char *pod = part_begins(c, "pod") ? c.p : NULL;
	size_t n = 0;

	if (part_begins(c, "kubepods")) {
		const char *at = memmem(c.p, c.n, "-pod", 4);

		pod = at ? at + 1 : NULL;
	}
	if (!pod)
		return;
	for (pod += 3; pod < c.p + c.n && *pod != '.' && *pod != ':' && n + 1 < sizeof(out->pod); pod++)
		out->pod[n++] = *pod == '_' ? '-' : *pod;
	out->pod[n] = 0;
}

static void take_unit(struct part c, struct container_ref *out)
{
	if (part_ends(c, ".service") || part_ends(c, ".scope") || part_ends(c, ".socket") || part_ends(c, ".mount"))
		copy_unescaped(c, out->unit, sizeof(out->unit));
}

bool container_parse(const char *path, size_t len, struct container_ref *out)
{
	struct part parent = {"", 0};
	bool in_pods = false;

	*out = (struct container_ref){.runtime = ""};
	len = strnlen(path, len);
	for (size_t pos = 0; pos < len;) {
		const char *p = path + pos, *slash = memchr(p, '/', len - pos);
		struct part c = {p, slash ? (size_t)(slash - p) : len - pos};

		pos += c.n + 1;
		if (!c.n)
			continue;
		in_pods |= part_is(c, "kubepods") || part_begins(c, "kubepods");
		if (in_pods)
			take_pod(c, out);
		if (take_container(c, parent, out->pod[0], out))
			out->end = (size_t)(c.p + c.n - path);
		else if (!out->end)
			take_unit(c, out);
		parent = c;
	}
	return out->end > 0;
}

bool container_outer(const char *path, const struct container_ref *ref, struct container_ref *out)
{
	size_t end = ref->end;

	while (end && path[end - 1] != '/')
		end--;
	return container_parse(path, end, out);
}

/* ---- Docker's files ---- */

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

static char *copy_string(const json_t *value)
{
	const char *s = json_string_value(value);

	return s && s[0] ? mem_strndup(s, strlen(s) < 1024 ? strlen(s) : 1024) : NULL;
}

static void take_labels(const json_t *labels, struct container_names *out)
{
	char *text = json_object_size(labels) ? json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	out->project = copy_string(json_object_get(labels, "com.docker.compose.project"));
	out->service = copy_string(json_object_get(labels, "com.docker.compose.service"));
	if (text && strlen(text) <= CONTAINER_LABELS_MAX)
		out->labels = mem_strdup(text);
	free(text);
}

int container_parse_docker(const char *json, size_t len, struct container_names *out)
{
	json_t *root = json_loadb(json, len, JSON_DISABLE_EOF_CHECK, NULL), *conf = json_object_get(root, "Config");
	json_int_t restarts = json_integer_value(json_object_get(root, "RestartCount"));
	char *name;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	name = copy_string(json_object_get(root, "Name"));
	if (name && name[0] == '/')
		memmove(name, name + 1, strlen(name));
	out->name = name;
	out->image = copy_string(json_object_get(conf, "Image"));
	out->started = copy_string(json_object_get(json_object_get(root, "State"), "StartedAt"));
	if (out->started && !strncmp(out->started, NEVER, strlen(NEVER))) {
		free(out->started);
		out->started = NULL;
	}
	out->restarts = restarts > 0 && restarts <= INT32_MAX ? (uint32_t)restarts : 0;
	take_labels(json_object_get(conf, "Labels"), out);
	json_decref(root);
	return 0;
}

int container_read_file(const char *path, size_t max, char **out, size_t *len)
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

int container_docker(const char *docker_root, const char *id, struct container_names *out)
{
	cleanup_free char *json = NULL;
	char path[1024];
	size_t len;
	int rc;

	if (!is_id((struct part){id, strlen(id)}))
		return -ENOENT;
	if ((size_t)snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", docker_root, id) >= sizeof(path))
		return -ENAMETOOLONG;
	rc = container_read_file(path, JSON_MAX, &json, &len);
	return rc ? rc : container_parse_docker(json, len, out);
}

const char *container_docker_root(void)
{
	static char root[512];
	cleanup_free char *json = NULL;
	json_t *conf;
	const char *dir;
	size_t len;

	if (root[0])
		return root;
	snprintf(root, sizeof(root), "/var/lib/docker");
	if (container_read_file("/etc/docker/daemon.json", JSON_MAX, &json, &len))
		return root;
	conf = json_loadb(json, len, 0, NULL);
	dir = json_string_value(json_object_get(conf, "data-root"));
	if (dir && dir[0] == '/' && strlen(dir) < sizeof(root))
		snprintf(root, sizeof(root), "%s", dir);
	json_decref(conf);
	return root;
}
