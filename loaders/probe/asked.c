/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/asked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/tracefs.h"
#include "loaders/probe/code.h"
#include "loaders/probe/files.h"
#include "loaders/probe/format.h"
#include "loaders/probe/plan.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* ---- tracepoints ---- */

static int no_tracepoint(const struct probespec *s, const char *name, int err, struct err *e)
{
	if (err == -ENOENT)
		err_set(e, -ENOENT, EXIT_PREREQUISITE, "probe %s: this kernel has no tracepoint %s",
			s->name, name);
	else
		err_set(e, err, EXIT_PERMISSION, "probe %s: tracepoint %s cannot be read: %s",
			s->name, name, strerror(-err));
	err_fix(e, "sudo sonde probes %s", strrchr(name, '/') + 1);
	return err;
}

/* Its number and its fields. */
static int tracepoint_find(const struct probespec *s, int events, const char *name, uint64_t *id,
			   struct format_field fields[FORMAT_FIELDS], size_t *n, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	int err = tracefs_id(events, name, id);

	if (!err && fields)
		err = tracefs_format(events, name, &text);
	if (err)
		return no_tracepoint(s, name, err, e);
	if (fields)
		*n = format_read(strbuf_str(&text), text.len, fields);
	return 0;
}

/* ---- system calls ---- */

/* The kernel names a few otherwise than the manual. */
static const char *kernels_name(const char *call)
{
	static const char *const names[][2] = {{"stat", "newstat"},   {"lstat", "newlstat"},
					       {"fstat", "newfstat"}, {"uname", "newuname"},
					       {"umount2", "umount"}, {"sendfile", "sendfile64"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i][0], call))
			return names[i][1];
	return call;
}

static int find_call(struct asked_probe *p, int events, struct err *e)
{
	struct format_field fields[FORMAT_FIELDS];
	struct plan_source source = {.fields = fields};
	const char *call = kernels_name(p->spec.at.target);
	bool all = *p->spec.at.target == '*';
	char name[PROBESPEC_PATH + 32];
	size_t n = 0;
	int err;

	snprintf(name, sizeof(name), all ? "raw_syscalls/sys_enter" : "syscalls/sys_enter_%s",
		 call);
	err = tracepoint_find(&p->spec, events, name, &p->from.tracepoint, fields, &n, e);
	if (err)
		return err;
	snprintf(name, sizeof(name), all ? "raw_syscalls/sys_exit" : "syscalls/sys_exit_%s", call);
	err = tracepoint_find(&p->spec, events, name, &p->at.tracepoint, NULL, NULL, e);
	source.n_fields = all ? 0 : n;
	return err ? err : plan_make(&p->spec, NULL, &source, &p->plan, e);
}

/* ---- all ---- */

/* What a hook has, as its program may read it. */
struct source {
	struct format_field fields[FORMAT_FIELDS];
	struct plan_notes notes;
	struct plan_source plan;
};

static int find_hook(struct asked_probe *p, const struct probespec_where *w, struct asked_hook *k,
		     int events, struct source *out, struct err *e)
{
	char name[PROBESPEC_PATH + PROBESPEC_PATH];
	uint64_t price = PRICE_TRACEPOINT;
	int err;

	*out = (struct source){.plan = {.fields = out->fields}};
	if (w->kind == PROBESPEC_TRACEPOINT) {
		snprintf(name, sizeof(name), "%s/%s", w->group, w->target);
		err = tracepoint_find(&p->spec, events, name, &k->tracepoint, out->fields,
				      &out->plan.n_fields, e);
	} else {
		err = code_find(p, w, k, &out->notes, &price, e);
		out->plan.notes = w->kind == PROBESPEC_USDT ? &out->notes : NULL;
	}
	if (price > p->price_ns)
		p->price_ns = price;
	return err;
}

static int find_hooks(struct asked_probe *p, int events, struct err *e)
{
	struct source from, at;
	int err = 0;

	p->price_ns = 0;
	if (p->spec.latency)
		err = find_hook(p, &p->spec.from, &p->from, events, &from, e);
	if (!err)
		err = find_hook(p, &p->spec.at, &p->at, events, &at, e);
	if (err)
		return err;
	p->price_ns += probespec_has_ns(&p->spec) ? PRICE_PAIR : 0;
	return plan_make(&p->spec, p->spec.latency ? &from.plan : NULL, &at.plan, &p->plan, e);
}

static bool is_kernels(const struct probespec_where *w)
{
	return w->kind == PROBESPEC_TRACEPOINT || w->kind == PROBESPEC_SYSCALL;
}

static int find_one(struct asked_probe *p, struct err *e)
{
	cleanup_fd int events = -1;

	if (is_kernels(&p->spec.at) || (p->spec.latency && is_kernels(&p->spec.from))) {
		events = tracefs_open(e);
		if (events < 0)
			return events;
	}
	p->price_ns = PRICE_CALL;
	return p->spec.at.kind == PROBESPEC_SYSCALL ? find_call(p, events, e) :
						      find_hooks(p, events, e);
}

static int named_twice(const struct asked *a, const struct probespec *s, struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->v[i].spec.name, s->name) != 0)
			continue;
		err_set(e, -EINVAL, EXIT_USAGE, "two probes are called %s", s->name);
		err_fix(e, "--probe 'other=%s'", s->text);
		return -EINVAL;
	}
	return 0;
}

static int too_many(struct err *e)
{
	return err_set(
		e, -EINVAL, EXIT_USAGE,
		"16 probes can be recorded at a time; one in several files, or with several layouts of its arguments, counts as several");
}

static int add_one(struct asked *a, const struct probespec *s, struct err *e)
{
	uint32_t layout = 0, layouts;
	int rc;

	do {
		struct asked_probe *p = &a->v[a->n];

		if (a->n == ASKED_MOST)
			return too_many(e);
		*p = (struct asked_probe){.spec = *s, .layout = layout};
		rc = find_one(p, e);
		p->plan.index = (__u8)a->n;
		p->plan.self = (__u32)getpid();
		layouts = p->layouts;
		a->n += !rc;
	} while (!rc && ++layout < layouts);
	return rc;
}

/* What the other hook's file is, where this one's is `path`. */
static int file_of(const struct probespec_where *w, const char *name, const char *path,
		   struct probespec_where *out, struct err *e)
{
	struct files other;
	int rc = 0;

	if (is_kernels(w))
		return 0;
	if (!strcmp(w->group, name)) {
		snprintf(out->group, sizeof(out->group), "%s", path);
		return 0;
	}
	rc = files_find(w->group, &other, e);
	if (!rc && other.n > 1)
		rc = err_set(e, -EINVAL, EXIT_USAGE,
			     "%s is several files: of a pair only one hook may be in several",
			     w->group);
	if (!rc)
		memcpy(out->group, other.v[0].path, sizeof(out->group));
	return rc;
}

/* In each of the files that match its name and have the probe. */
static int add_files(struct asked *a, const struct probespec *s, const char *name, struct err *e)
{
	const size_t before = a->n;
	struct files files;
	int rc = files_find(name, &files, e);

	for (size_t i = 0; !rc && i < files.n; i++) {
		struct probespec one = *s;

		rc = file_of(&s->at, name, files.v[i].path, &one.at, e);
		if (!rc && s->latency)
			rc = file_of(&s->from, name, files.v[i].path, &one.from, e);
		if (!rc)
			rc = add_one(a, &one, e);
		if (rc == -ENOENT && (files.n > 1 && (i + 1 < files.n || a->n > before)))
			rc = 0; /* not in this one */
	}
	return rc;
}

static int add(struct asked *a, const char *text, struct err *e)
{
	struct probespec s;
	int rc = probespec_parse(text, &s, e);

	if (!rc)
		rc = named_twice(a, &s, e);
	if (rc)
		return rc;
	if (!is_kernels(&s.at) && *s.at.group != '/')
		return add_files(a, &s, s.at.group, e);
	if (s.latency && !is_kernels(&s.from) && *s.from.group != '/')
		return add_files(a, &s, s.from.group, e);
	return add_one(a, &s, e);
}

static int add_all(struct asked *a, const char *list, struct err *e)
{
	char text[PROBESPEC_TEXT_MAX];
	int rc = 0, n;

	while (!rc && (n = probespec_next(&list, text))) {
		if (n < 0)
			return err_set(e, -EINVAL, EXIT_USAGE,
				       "a probe's text has 511 bytes at most");
		rc = add(a, text, e);
	}
	return rc;
}

int asked_find(struct asked *a, const struct option_list *specs, struct err *e)
{
	int rc = 0;

	*a = (struct asked){.v = mem_array(ASKED_MOST, sizeof(*a->v))};
	for (size_t i = 0; !rc && i < specs->n; i++)
		rc = add_all(a, specs->items[i], e);
	if (!rc && !a->n)
		rc = err_set(e, -EINVAL, EXIT_USAGE, "no probe is named");
	return rc;
}

void asked_release(struct asked *a)
{
	free(a->v);
	*a = (struct asked){0};
}
