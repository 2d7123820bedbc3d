/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/profilegroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/model/kinds.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/reading.h"
#include "tools/select/select.h"

struct grouping {
	int64_t from_ts, to_ts;
	const struct profile_sink *sink;
	void *ctx;
};

bool profile_named(const char *name, size_t len)
{
	for (enum store_kind kind = 1; kind < STORE_KINDS; kind++) {
		const char *push = store_kind_info(kind)->push;

		if (push && strlen(push) == len && !strncmp(push, name, len))
			return true;
	}
	return false;
}

/* --- groups --- */

static struct profile_group group_of(const struct fold_process *p)
{
	struct profile_group g = {.container = p->container,
				  .unit = *p->container ? "" : p->unit,
				  .comm = p->comm,
				  .comm_len = strlen(p->comm)};

	if (!*p->container && !*p->unit && !*p->exe && *p->comm != '/')
		g.comm_len = strcspn(p->comm, "/");
	return g;
}

static int group_order(const struct profile_group *a, const struct profile_group *b)
{
	size_t len = a->comm_len < b->comm_len ? a->comm_len : b->comm_len;
	int d = strcmp(a->container, b->container);

	if (!d)
		d = strcmp(a->unit, b->unit);
	if (!d)
		d = memcmp(a->comm, b->comm, len);
	return d ? d : (a->comm_len > b->comm_len) - (a->comm_len < b->comm_len);
}

static int leaf_order(const void *a, const void *b, void *ctx)
{
	const struct fold *f = ctx;
	const struct fold_leaf *x = &f->leaves[*(const uint32_t *)a],
			       *y = &f->leaves[*(const uint32_t *)b];
	struct profile_group g = group_of(&f->processes[x->process]),
			     h = group_of(&f->processes[y->process]);
	int d = x->process == y->process ? 0 : group_order(&g, &h);

	return d                  ? d :
	       x->node != y->node ? (x->node > y->node) - (x->node < y->node) :
				    (x->process > y->process) - (x->process < y->process);
}

/* Leaf `leaf` of `f` into the last one of `g`, if that is of the same stack, else behind it. */
static void leaf_put(struct fold *g, const struct fold *f, uint32_t leaf)
{
	const struct fold_leaf *x = &f->leaves[leaf];

	if (!g->n_leaves || g->leaves[g->n_leaves - 1].node != x->node) {
		g->leaves[g->n_leaves] = *x;
		if (f->with)
			g->with[g->n_leaves] = f->with[leaf];
		g->n_leaves++;
		return;
	}
	g->leaves[g->n_leaves - 1].samples += x->samples;
	g->leaves[g->n_leaves - 1].ns += x->ns;
	if (f->with) {
		g->with[g->n_leaves - 1].samples += f->with[leaf].samples;
		g->with[g->n_leaves - 1].ns += f->with[leaf].ns;
	}
}

static int groups_add(const struct grouping *s, const struct fold *f, const char *name,
		      struct err *e)
{
	cleanup_free uint32_t *order = mem_array(f->n_leaves + 1, sizeof(*order));
	cleanup_free struct fold_leaf *leaves = mem_array(f->n_leaves + 1, sizeof(*leaves));
	cleanup_free struct fold_with *with = mem_array(f->n_leaves + 1, sizeof(*with));
	struct fold part = *f;
	int rc = 0;

	for (uint32_t i = 0; i < f->n_leaves; i++)
		order[i] = i;
	qsort_r(order, f->n_leaves, sizeof(*order), leaf_order, (void *)f);
	part.leaves = leaves;
	part.with = f->with ? with : NULL;
	part.n_losses = 0; /* are the whole host's */
	part.from_ns = s->from_ts * NSEC_PER_SEC;
	part.to_ns = s->to_ts * NSEC_PER_SEC;
	for (size_t i = 0, begin = 0; !rc && i < f->n_leaves; i++) {
		struct profile_group g = group_of(&f->processes[f->leaves[order[i]].process]), next;

		if (i == begin)
			part.n_leaves = 0;
		leaf_put(&part, f, order[i]);
		if (i + 1 < f->n_leaves) {
			next = group_of(&f->processes[f->leaves[order[i + 1]].process]);
			if (!group_order(&g, &next))
				continue;
		}
		part.processes = &f->processes[f->leaves[order[i]].process]; /* whose executable is
										the first mapping */
		part.n_processes = 1;
		rc = s->sink->group(s->ctx, &part, &g, name, e);
		begin = i + 1;
	}
	return rc;
}

/* --- ranges --- */

/* The profile of `kind`; where the store has nothing of it, that of the kind it goes with. */
static int kind_add(const struct grouping *s, const struct selection *sel,
		    const struct store_kind_info *kind, uint32_t kinds, struct err *e)
{
	struct fold_opts opts = {.leaves = true, .with = true};
	const enum store_kind tries[] = {kind->kind, kind->with};
	struct fold *f = NULL;
	struct err why = {0};
	int rc = -ENODATA;

	for (size_t i = 0; rc && i < 2; i++) {
		if (!tries[i] || !(kinds & 1u << tries[i]))
			continue;
		opts.kind = tries[i];
		rc = fold_make(sel, &opts, &f, &why);
		if (rc && why.exit != EXIT_NOTHING) {
			*e = why;
			return rc;
		}
	}
	if (rc)
		return 0;
	rc = groups_add(s, f, kind->series ? kind->series : kind->push, e);
	if (!rc && s->sink->end)
		rc = s->sink->end(s->ctx, e);
	fold_free(f);
	return rc;
}

/* A minute of a file of hours needs little of its dictionary. More than two files of one minute are
 * read whole. */
static int segments_narrow(const struct selection *sel, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sel->n_segments && sel->n_segments <= 2; i++) {
		struct store_segment *s = NULL;

		rc = select_segment(sel, sel->segments[i].path, &s, e);
		if (!rc)
			store_segment_narrow(s, sel->from_ns, sel->to_ns);
	}
	return rc;
}

int profile_groups(const char *store, const struct target *t, int64_t from_ts, int64_t to_ts,
		   const struct profile_sink *sink, void *ctx, struct err *e)
{
	const struct grouping s = {.from_ts = from_ts, .to_ts = to_ts, .sink = sink, .ctx = ctx};
	char from[32], to[32];
	struct selection *sel = NULL;
	uint32_t kinds = 0;
	int rc;

	reading_quiet();
	snprintf(from, sizeof(from), "%" PRId64, from_ts);
	snprintf(to, sizeof(to), "%" PRId64, to_ts);
	rc = select_new(&(struct select_args){.from = from, .to = to}, store, NULL, 0, true, &sel,
			e);
	if (!rc)
		rc = segments_narrow(sel, e);
	if (!rc)
		rc = fold_kinds_there(sel, &kinds, e);
	for (enum store_kind kind = 1; !rc && kind < STORE_KINDS; kind++) {
		const struct store_kind_info *info = store_kind_info(kind);

		if (info->push && target_wants(t->profiles, info->push))
			rc = kind_add(&s, sel, info, kinds, e);
	}
	select_free(sel);
	return rc;
}
