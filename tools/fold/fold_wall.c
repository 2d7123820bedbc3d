/* SPDX-License-Identifier: Apache-2.0 */
/* fold_wall: What ran is put into the tree first, so that what waited finds the
 * callers in common. */
#include "tools/fold/fold_wall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/waits.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/fold_slices.h"
#include "tools/fold/wallparts.h"
#include "tools/print/reading.h"
#include "tools/select/select.h"
#include "tools/waits/waitrules.h"

enum shape_of { SHAPE_RAN, SHAPE_WAITED, SHAPE_READY, SHAPES };

static const enum store_kind SHAPE_KIND[SHAPES] = {STORE_KIND_CPU, STORE_KIND_OFFCPU,
						   STORE_KIND_RUNQUEUE};

static const struct store_kind_info WALL = {.name = FOLD_WALL_NAME,
					    .class = STORE_DURATION,
					    .unit_n = STORE_EVENTS,
					    .unit_value = STORE_TIME,
					    .unit = STORE_TIME,
					    .pprof_n = "events",
					    .pprof_value = "wall",
					    .what = "time on and off CPU",
					    .counted = "samples and waits"};

struct shape {
	struct fold *f; /* NULL: nothing of this kind */
	uint32_t *frame,
		*off; /* its frame -> frame of the tree + 1: as it is, and of origin FOLD_OFF */
	struct idmap node; /* (node of a group, its node) -> node of the tree */
};

struct wall {
	struct fold_build *b;
	const struct selection *sel;
	struct fold_opts opts;
	struct wallparts parts;
	struct shape shape[SHAPES];
	struct idmap process_of; /* pid and command -> process of the tree: each kind is recorded by
				    another program */
	struct fold_spans spans;
	const struct store_dict *dict;
	uint32_t slice; /* at hand */
	uint32_t n_ran; /* nodes of what ran: the first ones */
};

static enum shape_of shape_of(uint32_t class)
{
	return class == STORE_RUNNING     ? SHAPE_RAN :
	       class >= STORE_READY_WOKEN ? SHAPE_READY :
					    SHAPE_WAITED;
}

/* --- what is exact --- */

static uint64_t loose_identity(uint32_t pid, const char *comm)
{
	return hash_str(hash_u64(HASH_SEED, pid), comm);
}

static int add_total(void *ctx, const struct store_wait_total *t)
{
	struct wall *w = ctx;
	const struct store_process_row *row = &w->dict->processes[t->who.process];
	struct wallkey key = {.process = fold_store_process(w->b, row),
			      .tid = t->who.tid,
			      .thread = fold_text(w->b, t->who.name),
			      .class = t->class};

	key.partial = t->state == STORE_STATE_BLOCKED &&
		      t->flags & (STORE_WAIT_BEFORE | STORE_WAIT_UNFINISHED);
	idmap_set(&w->process_of, loose_identity(row->pid, w->b->pub.processes[key.process].comm),
		  key.process);
	wallparts_add(&w->parts, &key, w->slice, t->n, t->total_ns);
	return 0;
}

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct wall *w = ctx;

	(void)thread;
	return select_wants(w->sel, p, tid) && (w->sel->self || !p->self);
}

static int add_run(struct wall *w, struct store_segment *s, int64_t run, struct err *e)
{
	struct store_query q = {.from_ns = w->sel->from_ns,
				.to_ns = w->sel->to_ns,
				.run = run,
				.want = wanted,
				.ctx = w};
	struct fold *pub = &w->b->pub;
	int rc = 0;

	w->slice = 0;
	if (!pub->n_slices)
		return store_wait_totals(s, &q, add_total, w, e);
	fold_spans_note(&w->spans, w->sel, w->dict, run);
	for (; w->slice < pub->n_slices && !rc; w->slice++) {
		q.from_ns = pub->slices[w->slice].from_ns;
		q.to_ns = pub->slices[w->slice].to_ns;
		rc = store_wait_totals(s, &q, add_total, w, e);
	}
	return rc;
}

static int add_segment(struct wall *w, const char *path, struct err *e)
{
	struct store_segment *s = NULL;
	int64_t run = select_run_in(w->sel, path, 0);
	int rc = run < 0 ? 0 : select_segment(w->sel, path, &s, e);

	if (!rc && run >= 0)
		rc = store_segment_dict(s, &w->dict, e);
	for (size_t i = 1; !rc && run >= 0; i++) {
		rc = add_run(w, s, run, e);
		run = select_run_in(w->sel, path, i);
	}
	return rc;
}

/* --- what shapes it --- */

static int shape_read(struct wall *w, enum shape_of which, struct err *e)
{
	struct fold_opts o = {.kind = SHAPE_KIND[which],
			      .leaves = true,
			      .slices = w->opts.slices,
			      .lines = w->opts.lines,
			      .no_inline = w->opts.no_inline,
			      .interpreter = w->opts.interpreter};
	struct shape *s = &w->shape[which];
	int rc = fold_make(w->sel, &o, &s->f, e);

	if (rc == -ENODATA) {
		*e = (struct err){0};
		return 0;
	}
	if (rc)
		return rc;
	s->frame = mem_array(s->f->n_frames + 1, sizeof(*s->frame));
	s->off = mem_array(s->f->n_frames + 1, sizeof(*s->off));
	for (size_t i = 0; i < s->f->n_leaves; i++) {
		const struct fold_leaf *l = &s->f->leaves[i];
		const struct fold_process *p = &s->f->processes[l->process];
		struct wallkey key = {.tid = l->tid,
				      .thread = fold_text(w->b, l->thread),
				      .class = which == SHAPE_RAN ? STORE_RUNNING : l->label};
		uint64_t process;

		if (!idmap_get(&w->process_of, loose_identity(p->pid, p->comm), &process))
			continue;
		key.process = (uint32_t)process;
		wallparts_shape(&w->parts, &key, &(struct wallstack){l->slice, l->node, l->ns});
	}
	return 0;
}

static void shapes_release(struct wall *w)
{
	for (int i = 0; i < SHAPES; i++) {
		struct shape *s = &w->shape[i];

		if (!s->f)
			continue;
		fold_free(s->f);
		free(s->frame);
		free(s->off);
		idmap_release(&s->node);
	}
}

/* --- the tree --- */

static uint32_t frame_of(struct wall *w, struct shape *s, uint32_t frame, bool off)
{
	uint32_t *known = off ? s->off : s->frame;

	if (!known[frame]) {
		struct fold_frame fr = fold_frame_from(w->b, &s->f->frames[frame]);

		fr.origin = off ? FOLD_OFF : fr.origin;
		known[frame] = fold_add_frame(w->b, &fr) + 1;
	}
	return known[frame] - 1;
}

static uint32_t child_of(struct wall *w, enum shape_of which, uint32_t parent, uint32_t frame)
{
	struct shape *s = &w->shape[which];
	uint32_t same = frame_of(w, s, frame, false), node;

	if (which == SHAPE_RAN)
		return fold_child(w->b, parent, same);
	if (fold_known_child(w->b, parent, same, &node) && node < w->n_ran)
		return node;
	return fold_child(w->b, parent, frame_of(w, s, frame, true));
}

static uint32_t node_of(struct wall *w, enum shape_of which, uint32_t group, uint32_t stack)
{
	struct shape *s = &w->shape[which];
	cleanup_free uint32_t *path = NULL;
	size_t n = 0, cap = 0;
	uint64_t node = group;

	for (uint32_t i = stack; i && !idmap_get(&s->node, (uint64_t)group << 32 | i, &node);
	     i = s->f->nodes[i].parent) {
		mem_grow(path, n, cap);
		path[n++] = i;
	}
	while (n--) {
		node = child_of(w, which, (uint32_t)node, s->f->nodes[path[n]].frame);
		idmap_set(&s->node, (uint64_t)group << 32 | path[n], node);
	}
	return (uint32_t)node;
}

static const struct waitrule *rule_of(const struct fold *f, uint32_t stack, const char *class)
{
	const struct waitrule *rule = NULL;

	for (; stack && stack != UINT32_MAX && !rule; stack = f->nodes[stack].parent)
		rule = waitrule_of(class, f->frames[f->nodes[stack].frame].name);
	return rule;
}

/* NULL: none, its stack is where it was. */
static const char *tip_name(const struct wall *w, const struct wallkey *k, uint32_t stack,
			    char *buf, size_t size)
{
	static const char *const ready[] = {"woken", "preempted", "yielded"};
	enum shape_of which = shape_of(k->class);
	const char *class = store_wait_reason(k->class);
	const struct waitrule *rule =
		which == SHAPE_WAITED ? rule_of(w->shape[which].f, stack, class) : NULL;
	bool idle = rule ? rule->idle : waitrule_idle_by_class(class);

	if (which == SHAPE_RAN)
		return stack == UINT32_MAX ? "[on CPU]" : NULL;
	if (which == SHAPE_READY)
		snprintf(buf, size, "[ready: %s]",
			 k->class <= STORE_READY_YIELDED ? ready[k->class - STORE_READY_WOKEN] :
							   "other");
	else
		snprintf(buf, size, "[%s: %s%s]", idle ? "idle" : "waits",
			 rule && rule->reason ? rule->reason : class,
			 k->partial ? ", not over" : "");
	return buf;
}

static uint32_t tip_of(struct wall *w, const struct wallkey *k, uint32_t stack, uint32_t node)
{
	struct fold_frame tip = w->b->pub.frames[0]; /* all but these are the root's */
	char buf[64];
	const char *name = tip_name(w, k, stack, buf, sizeof(buf));

	if (!name)
		return node;
	tip.name = fold_text(w->b, name);
	tip.origin = shape_of(k->class) == SHAPE_RAN ? FOLD_UNKNOWN : FOLD_OFF;
	return fold_child(w->b, node, fold_add_frame(w->b, &tip));
}

static void share_put(void *ctx, const struct wallkey *k, uint32_t stack, const struct wallslice *x)
{
	struct wall *w = ctx;
	struct fold *pub = &w->b->pub;
	enum shape_of which = shape_of(k->class);
	uint32_t node = fold_group_node(w->b, w->opts.group, k->process, k->thread, k->tid);

	if (stack != UINT32_MAX) {
		node = node_of(w, which, node, stack);
		pub->frames_unnamed_ns += pub->frames[pub->nodes[node].frame].named ? 0 : x->ns;
	}
	node = tip_of(w, k, stack, node);
	pub->nodes[node].self_ns += x->ns;
	pub->nodes[node].self_samples += x->n;
	pub->processes[k->process].ns += x->ns;
	pub->processes[k->process].samples += x->n;
	if (w->opts.leaves)
		fold_add_leaf(w->b, &(struct fold_leaf){.node = node,
							.process = k->process,
							.thread = k->thread,
							.tid = k->tid,
							.slice = x->slice,
							.samples = x->n,
							.ns = x->ns,
							.label = k->class});
	if (w->opts.cells)
		fold_add_cell(w->b,
			      &(struct fold_cell){.node = node, .slice = x->slice, .ns = x->ns});
}

static void tree_make(struct wall *w)
{
	for (size_t i = 0; i < w->parts.n; i++)
		if (shape_of(w->parts.v[i].key.class) == SHAPE_RAN)
			wallparts_share(&w->parts.v[i], share_put, w);
	w->n_ran = (uint32_t)w->b->pub.n_nodes;
	for (size_t i = 0; i < w->parts.n; i++)
		if (shape_of(w->parts.v[i].key.class) != SHAPE_RAN)
			wallparts_share(&w->parts.v[i], share_put, w);
}

/* When, on which host, and what was lost, as the kinds tell it. */
static void facts_take(struct wall *w)
{
	struct fold *pub = &w->b->pub;

	pub->from_ns = pub->asked_from_ns = w->sel->from_ns;
	pub->to_ns = pub->asked_to_ns = w->sel->to_ns;
	pub->covered_ns = (uint64_t)(pub->to_ns - pub->from_ns);
	for (int i = SHAPES; i-- > 0;) {
		const struct fold *f = w->shape[i].f;

		if (!f)
			continue;
		pub->from_ns = f->from_ns;
		pub->to_ns = f->to_ns;
		pub->covered_ns = f->covered_ns;
		pub->cpus = f->cpus;
		pub->own = f->own;
		pub->host = fold_text(w->b, f->host);
		pub->kernel = fold_text(w->b, f->kernel);
		/* of waits and of the run queue: the same */
		for (size_t k = 0; k < f->n_losses && i != SHAPE_READY; k++)
			fold_add_loss(w->b, &f->losses[k]);
		for (size_t k = 0; k < f->n_shed && i != SHAPE_READY; k++)
			fold_add_shed(w->b, &f->shed[k]);
	}
}

/* --- */

static int wall_read(struct wall *w, struct err *e)
{
	const struct selection *sel = w->sel;
	int rc = w->opts.slices ? fold_slices_plan(sel, w->opts.slices, &w->b->pub, e) : 0;

	reading_begin(sel->n_segments);
	for (size_t i = 0; !rc && i < sel->n_segments; i++) {
		reading_file(i);
		rc = add_segment(w, sel->segments[i].path, e);
	}
	reading_end();
	if (!rc && !w->parts.n)
		return fold_nothing(sel, STORE_KIND_OFFCPU, e);
	for (int i = 0; !rc && i < SHAPES; i++)
		rc = shape_read(w, (enum shape_of)i, e);
	return rc;
}

int fold_wall_make(const struct selection *sel, const struct fold_opts *o, struct fold **out,
		   struct err *e)
{
	struct wall w = {.b = fold_begin(), .sel = sel, .opts = *o};
	int rc;

	w.b->pub.kind = &WALL;
	w.b->pub.unit = STORE_TIME;
	rc = wall_read(&w, e);
	if (!rc) {
		tree_make(&w);
		facts_take(&w);
	}
	fold_end(w.b);
	fold_spans_cover(&w.spans, w.b->pub.slices, w.b->pub.n_slices);
	shapes_release(&w);
	wallparts_release(&w.parts);
	idmap_release(&w.process_of);
	if (rc)
		fold_free(&w.b->pub);
	else
		*out = &w.b->pub;
	return rc;
}
