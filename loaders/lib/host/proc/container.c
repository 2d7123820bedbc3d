/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: walks a path component by component and compares each, given the previous one, with
 * the forms of the header. The last match wins, so it finds the innermost container.
 */
#include "loaders/lib/host/proc/container.h"
#include "schema/base/array.h"

#include <stdlib.h>
#include <string.h>

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

		if (c.n - i > 3 && c.p[i] == '\\' && c.p[i + 1] == 'x' &&
		    strspn((memcpy(hex, c.p + i + 2, 2), hex), "0123456789abcdef") == 2) {
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

static const struct form forms[] = {{"docker-", "docker", false},
				    {"cri-containerd-", "containerd", false},
				    {"crio-", "cri-o", false},
				    {"libpod-", "podman", false},
				    {"libpod-payload-", "podman", false},
				    {"nerdctl-", "containerd", false},
				    {"containerd-", "containerd", false},
				    {"buildkit-", "buildkit", false},
				    {"lxc.payload.", "lxc", true},
				    {"systemd-nspawn@", "nspawn", true},
				    {"machine-", "nspawn", true}};

static const char *parent_runtime(struct part parent, bool pod)
{
	if (part_is(parent, "docker"))
		return "docker";
	if (part_is(parent, "default") || part_is(parent, "k8s.io") || part_is(parent, "moby") ||
	    pod)
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
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *f = &forms[i];
		struct part id;

		if (!part_begins(c, f->prefix))
			continue;
		id = part_inner(c, f->prefix,
				f->named ? (part_ends(c, ".service") ? ".service" : ".scope") :
					   ".scope");
		/* machine-qemu\x2d3\x2dname.scope is a virtual machine, no container */
		if (f->named && !strcmp(f->prefix, "machine-") &&
		    (!part_ends(c, ".scope") || part_begins(id, "qemu") ||
		     part_begins(id, "lxc\\x2d")))
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
	return take(out,
		    memmem(c.p, c.n, ":crio:", 6)   ? "cri-o" :
		    memmem(c.p, c.n, ":docker:", 8) ? "docker" :
						      "containerd",
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

/* kind and others with a separate cgroup root put "kubelet-" before it */
#define KUBEPODS "kubepods"

/* "pod0a1b-..." under kubepods, "kubepods-besteffort-pod0a1b_2c.slice" with systemd's names */
static bool is_of_pods(struct part c)
{
	return memmem(c.p, c.n, KUBEPODS, strlen(KUBEPODS));
}

static void take_pod(struct part c, struct container_ref *out)
{
	const char *pod = part_begins(c, "pod") ? c.p : NULL;
	size_t n = 0;

	if (is_of_pods(c)) {
		const char *at = memmem(c.p, c.n, "-pod", 4);

		pod = at ? at + 1 : NULL;
	}
	if (!pod)
		return;
	for (pod += 3; pod < c.p + c.n && *pod != '.' && *pod != ':' && n + 1 < sizeof(out->pod);
	     pod++)
		out->pod[n++] = *pod == '_' ? '-' : *pod;
	out->pod[n] = 0;
}

static void take_unit(struct part c, struct container_ref *out)
{
	if (part_ends(c, ".service") || part_ends(c, ".scope") || part_ends(c, ".socket") ||
	    part_ends(c, ".mount"))
		copy_unescaped(c, out->unit, sizeof(out->unit));
}

/* "user-1000.slice", "user@1000.service" */
static void take_owner(struct part c, struct container_ref *out)
{
	bool slice = part_begins(c, "user-") && part_ends(c, ".slice");
	uint64_t uid = 0;

	if (out->owner || (!slice && !(part_begins(c, "user@") && part_ends(c, ".service"))))
		return;
	c = part_inner(c, "user-", slice ? ".slice" : ".service");
	if (c.n > 10)
		return;
	for (size_t i = 0; i < c.n; i++) {
		if (c.p[i] < '0' || c.p[i] > '9')
			return;
		uid = uid * 10 + (uint64_t)(c.p[i] - '0');
	}
	out->owner = uid <= UINT32_MAX ? (uint32_t)uid : 0;
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
		in_pods |= is_of_pods(c);
		if (in_pods)
			take_pod(c, out);
		if (take_container(c, parent, out->pod[0], out))
			out->end = (size_t)(c.p + c.n - path);
		else if (!out->end)
			take_unit(c, out);
		if (!out->end)
			take_owner(c, out);
		parent = c;
	}
	return out->end > 0;
}

bool container_named_by_path(const struct container_ref *ref)
{
	return !strcmp(ref->runtime, "lxc") || !strcmp(ref->runtime, "nspawn");
}

size_t container_choose(const char *const *paths, const size_t *lens, size_t n)
{
	struct container_ref ref;
	size_t first = n, best = n;

	for (size_t i = 0; i < n; i++) {
		if (!paths[i] || !lens[i])
			continue;
		if (container_parse(paths[i], lens[i], &ref))
			return i;
		if (first == n)
			first = i;
		if (best == n && lens[i] > 1)
			best = i;
	}
	return best < n ? best : first;
}

bool container_outer(const char *path, const struct container_ref *ref, struct container_ref *out)
{
	size_t end = ref->end;

	while (end && path[end - 1] != '/')
		end--;
	return container_parse(path, end, out);
}
