/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/reqdoing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/kinds.h"
#include "tools/cli/helper.h"
#include "tools/fold/fold.h"

#define FRAMES_SHOWN 64

/* The stack that a thread was in for longest. */
struct best {
	const struct fold *f;
	uint64_t ns;
	uint32_t node;
	uint64_t known_ns; /* of all of its stacks, on the CPU or in waits that are over */
};

static bool is_reason(const struct fold_frame *f)
{
	return f->origin == FOLD_GROUP &&
	       (!strcmp(f->module, FOLD_WAITS) || !strcmp(f->module, FOLD_IDLE));
}

/* Innermost first. */
static char *stack_text(const struct fold *f, uint32_t node)
{
	struct strbuf out = STRBUF_INIT;

	for (int n = 0; node && n < FRAMES_SHOWN; node = f->nodes[node].parent) {
		const struct fold_frame *x = &f->frames[f->nodes[node].frame];

		if (x->origin == FOLD_GROUP)
			continue;
		strbuf_addf(&out, "%s%s", n++ ? " < " : "", x->name);
	}
	return strbuf_take(&out);
}

/* The innermost function of the program, or else of the kernel. */
static const char *function_of(const struct fold *f, uint32_t node)
{
	const char *kernel = NULL;

	for (; node; node = f->nodes[node].parent) {
		const struct fold_frame *x = &f->frames[f->nodes[node].frame];

		if (x->origin == FOLD_GROUP)
			continue;
		if (x->origin != FOLD_KERNEL)
			return x->name;
		kernel = kernel ? kernel : x->name;
	}
	return kernel;
}

/* Where samples and waits that are over leave out most of the time, the thread waits, and that wait
 * is not over. */
static char *doing_text(const struct best *b, int64_t lasts_ns)
{
	bool still = b->f->kind->kind != STORE_KIND_STANDING && (int64_t)b->known_ns < lasts_ns / 2,
	     runs = b->f->kind->kind == STORE_KIND_CPU;
	struct strbuf out = STRBUF_INIT;
	const char *reason = NULL, *function = function_of(b->f, b->node);

	for (uint32_t node = b->node; node && !reason; node = b->f->nodes[node].parent)
		if (is_reason(&b->f->frames[b->f->nodes[node].frame]))
			reason = b->f->frames[b->f->nodes[node].frame].name;
	if (still)
		strbuf_addf(&out, "waits; before, it %s", runs ? "ran" : "waited");
	else
		strbuf_addstr(&out, runs ? "runs" : "waits");
	if (reason)
		strbuf_addf(&out, " (%s)", reason);
	if (function)
		strbuf_addf(&out, " in %s", function);
	return strbuf_take(&out);
}

/* A thread that has several of them tells nothing about one. */
static bool alone(const struct reqrunning *r, size_t i)
{
	const struct reqrun_end *s = &r->rows[i].server;

	if (!s->comm || !s->tid)
		return false;
	for (size_t k = 0; k < r->n; k++)
		if (k != i && r->rows[k].server.comm && r->rows[k].server.tid == s->tid &&
		    r->rows[k].server.pid == s->pid)
			return false;
	return true;
}

static void best_take(struct best *best, const struct reqrun_end *who, const struct fold *f)
{
	for (size_t k = 0; k < f->n_leaves; k++) {
		const struct fold_leaf *x = &f->leaves[k];

		if (x->tid != who->tid || f->processes[x->process].pid != who->pid)
			continue;
		best->known_ns += x->ns;
		if (x->ns > best->ns) {
			best->f = f;
			best->ns = x->ns;
			best->node = x->node;
		}
	}
}

static int read_kinds(const struct selection *sel, struct reqrun *r, bool ended, struct err *e)
{
	static const enum store_kind kinds[] = {STORE_KIND_CPU, STORE_KIND_OFFCPU,
						STORE_KIND_STANDING};
	struct fold *folds[ARRAY_SIZE(kinds)] = {NULL};
	struct best best = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(kinds); i++) {
		const struct fold_opts o = {
			.kind = kinds[i], .leaves = true, .reasons = kinds[i] != STORE_KIND_CPU};
		struct err none = {0};

		if (kinds[i] == STORE_KIND_STANDING && !ended)
			continue;
		rc = fold_make(sel, &o, &folds[i], &none);
		if (rc && none.exit != EXIT_NOTHING)
			*e = none;
		else
			rc = 0;
		if (folds[i])
			best_take(&best, &r->server, folds[i]);
	}
	if (!rc && best.f) {
		r->doing = doing_text(&best, r->lasts_ns);
		r->stack = stack_text(best.f, best.node);
	}
	for (size_t i = 0; i < ARRAY_SIZE(folds); i++)
		fold_free(folds[i]);
	return rc;
}

static int read_one(const struct select_args *asked, const char *store, int64_t at_ns, bool ended,
		    struct reqrun *r, struct err *e)
{
	int64_t from_ns = r->at_ns > at_ns - REQDOING_NS ? r->at_ns : at_ns - REQDOING_NS;
	char pid[16], from[32], to[32];
	const char *pids[] = {pid};
	const struct select_args args = {
		.self = asked->self, .from = from, .to = to, .pid = {.items = pids, .n = 1}};
	struct selection *sel = NULL;
	struct err none = {0};
	int rc;

	snprintf(pid, sizeof(pid), "%lld", (long long)r->server.pid);
	snprintf(from, sizeof(from), "%lld", (long long)(from_ns / NSEC_PER_SEC));
	snprintf(to, sizeof(to), "%lld", (long long)(at_ns / NSEC_PER_SEC + 2));
	rc = select_new(&args, store, NULL, 0, true, &sel, &none);
	if (rc && none.exit == EXIT_NOTHING)
		return 0;
	if (rc)
		*e = none;
	else
		rc = read_kinds(sel, r, ended, e);
	select_free(sel);
	return rc;
}

/* ---- now ---- */

/* Innermost first; *function: the innermost one of the program, else of the kernel. */
static char *frames_text(const json_t *frames, const char **function)
{
	struct strbuf out = STRBUF_INIT;
	const json_t *x;
	bool program = false;
	size_t i;

	json_array_foreach (frames, i, x) {
		const char *name = json_string_value(json_object_get(x, "function"));

		if (!name || i >= FRAMES_SHOWN)
			continue;
		strbuf_addf(&out, "%s%s", out.len ? " < " : "", name);
		if (!*function || (!program && !json_is_true(json_object_get(x, "kernel"))))
			*function = name;
		program |= !json_is_true(json_object_get(x, "kernel"));
	}
	return strbuf_take(&out);
}

static void now_take(struct reqrun *r, const json_t *thread)
{
	const char *reason = json_string_value(json_object_get(thread, "reason")), *function = NULL;
	struct strbuf out = STRBUF_INIT;

	free(r->doing);
	free(r->stack);
	r->stack = frames_text(json_object_get(thread, "frames"), &function);
	strbuf_addstr(&out, "waits");
	if (reason)
		strbuf_addf(&out, " (%s)", reason);
	if (function)
		strbuf_addf(&out, " in %s", function);
	r->doing = strbuf_take(&out);
}

/* The thread of a row; it has the same command's name, or another process has the number. */
static const json_t *thread_of(const json_t *threads, const struct reqrun_end *who)
{
	const json_t *x;
	size_t i;

	json_array_foreach (threads, i, x) {
		const char *comm = json_string_value(json_object_get(x, "comm"));

		if (json_integer_value(json_object_get(x, "pid")) == who->pid &&
		    json_integer_value(json_object_get(x, "tid")) == who->tid && comm &&
		    !strcmp(comm, who->comm))
			return x;
	}
	return NULL;
}

/* Without the right, or where a thread runs, what was recorded remains. */
static void read_now(const char *store, struct reqrunning *r, size_t n)
{
	char path[PATH_MAX], pid[REQDOING_ROWS][16];
	char *argv[2 * REQDOING_ROWS + 7] = {path,      "--json",  "--no-lines",
					     "--quiet", "--store", (char *)store};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct err none = {0};
	size_t k = 6;
	int status = 0;
	json_t *o;

	for (size_t i = 0; i < n; i++) {
		if (!alone(r, i))
			continue;
		snprintf(pid[i], sizeof(pid[i]), "%lld", (long long)r->rows[i].server.pid);
		argv[k++] = "--pid";
		argv[k++] = pid[i];
	}
	if (k == 6 || sibling_find("sonde-pstack", path, &none) ||
	    helper_output(argv, &out, &status, &none) || status)
		return;
	o = json_loads(strbuf_str(&out), 0, NULL);
	for (size_t i = 0; o && i < n; i++) {
		const json_t *thread =
			alone(r, i) ? thread_of(json_object_get(o, "rows"), &r->rows[i].server) :
				      NULL;

		if (thread)
			now_take(&r->rows[i], thread);
	}
	json_decref(o);
}

int reqdoing_read(const struct select_args *asked, const char *store, struct reqrunning *r,
		  size_t n, bool now, struct err *e)
{
	int rc = 0;

	n = n < REQDOING_ROWS ? n : REQDOING_ROWS;
	for (size_t i = 0; !rc && i < n; i++)
		if (alone(r, i))
			rc = read_one(asked, store, r->at_ns, r->ended, &r->rows[i], e);
	if (!rc && now && !geteuid())
		read_now(store, r, n);
	return rc;
}
