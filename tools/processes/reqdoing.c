/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/reqdoing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/kinds.h"
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

int reqdoing_read(const struct select_args *asked, const char *store, struct reqrunning *r,
		  size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n && i < REQDOING_ROWS; i++)
		if (alone(r, i))
			rc = read_one(asked, store, r->at_ns, r->ended, &r->rows[i], e);
	return rc;
}
