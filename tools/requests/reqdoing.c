/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/reqdoing.h"

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

/* The stack that the thread of each row was in for longest. */
struct best {
	const struct fold *f;
	uint64_t ns;
	uint32_t node;
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

static char *doing_text(const struct best *b)
{
	struct strbuf out = STRBUF_INIT;
	const char *reason = NULL, *function = function_of(b->f, b->node);

	for (uint32_t node = b->node; node && !reason; node = b->f->nodes[node].parent)
		if (is_reason(&b->f->frames[b->f->nodes[node].frame]))
			reason = b->f->frames[b->f->nodes[node].frame].name;
	strbuf_addstr(&out, b->f->kind->kind == STORE_KIND_CPU ? "runs" : "waits");
	if (reason)
		strbuf_addf(&out, " (%s)", reason);
	if (function)
		strbuf_addf(&out, " in %s", function);
	return strbuf_take(&out);
}

/* A thread that has several of them tells nothing about one. */
static bool alone(const struct reqrunning *r, size_t n, size_t i)
{
	const struct reqrun_end *s = &r->rows[i].server;

	if (!s->comm || !s->tid)
		return false;
	for (size_t k = 0; k < n; k++)
		if (k != i && r->rows[k].server.comm && r->rows[k].server.tid == s->tid &&
		    r->rows[k].server.pid == s->pid)
			return false;
	return true;
}

static void best_take(struct best *best, const struct reqrunning *r, size_t n, const struct fold *f)
{
	for (size_t k = 0; k < f->n_leaves; k++) {
		const struct fold_leaf *x = &f->leaves[k];

		for (size_t i = 0; i < n; i++)
			if (r->rows[i].server.comm && x->tid == r->rows[i].server.tid &&
			    f->processes[x->process].pid == r->rows[i].server.pid &&
			    x->ns > best[i].ns)
				best[i] = (struct best){f, x->ns, x->node};
	}
}

static struct option_list pids_of(const struct reqrunning *r, size_t n, char (*text)[16],
				  const char **items)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!alone(r, n, i))
			continue;
		snprintf(text[k], sizeof(text[k]), "%lld", (long long)r->rows[i].server.pid);
		items[k] = text[k];
		k++;
	}
	return (struct option_list){.items = items, .n = k};
}

static int read_kinds(const struct selection *sel, struct reqrunning *r, size_t n,
		      struct best *best, struct fold **folds, struct err *e)
{
	static const enum store_kind kinds[] = {STORE_KIND_CPU, STORE_KIND_OFFCPU,
						STORE_KIND_STANDING};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(kinds); i++) {
		const struct fold_opts o = {
			.kind = kinds[i], .leaves = true, .reasons = kinds[i] != STORE_KIND_CPU};
		struct err none = {0};

		if (kinds[i] == STORE_KIND_STANDING && !r->ended)
			continue;
		rc = fold_make(sel, &o, &folds[i], &none);
		if (rc && none.exit != EXIT_NOTHING)
			*e = none;
		else
			rc = 0;
		if (folds[i])
			best_take(best, r, n, folds[i]);
	}
	return rc;
}

int reqdoing_read(const struct select_args *asked, const char *store, struct reqrunning *r,
		  size_t n, struct err *e)
{
	struct fold *folds[3] = {NULL};
	struct best *best = mem_array(n + 1, sizeof(*best));
	char(*text)[16] = mem_array(n + 1, sizeof(*text)), from[32], to[32];
	const char **items = mem_array(n + 1, sizeof(*items));
	struct select_args args = {.self = asked->self, .from = from, .to = to};
	struct selection *sel = NULL;
	int rc = 0;

	snprintf(from, sizeof(from), "%lld", (long long)((r->at_ns - REQDOING_NS) / NSEC_PER_SEC));
	snprintf(to, sizeof(to), "%lld", (long long)(r->at_ns / NSEC_PER_SEC + 2));
	args.pid = pids_of(r, n, text, items);
	if (args.pid.n)
		rc = select_new(&args, store, NULL, 0, true, &sel, e);
	if (rc && e->exit == EXIT_NOTHING)
		rc = 0;
	if (!rc && sel)
		rc = read_kinds(sel, r, n, best, folds, e);
	for (size_t i = 0; i < n; i++)
		if (best[i].f && alone(r, n, i)) {
			r->rows[i].doing = doing_text(&best[i]);
			r->rows[i].stack = stack_text(best[i].f, best[i].node);
		}
	for (size_t i = 0; i < ARRAY_SIZE(folds); i++)
		fold_free(folds[i]);
	select_free(sel);
	free(best);
	free(text);
	free(items);
	return rc;
}
