/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_rows: what the rows of a segment say goes to its series, to leaves and cells, and to
 * processes. A series comes once in each slice; what it is of is looked at once.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/read/waits.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/fold_parts.h"
#include "tools/fold/fold_slices.h"
#include "tools/select/select.h"
#include "tools/waits/waitstack.h"

/* --- processes --- */

static uint32_t process_of(struct folding *f, uint32_t id)
{
	uint32_t i;

	if (f->seg_process[id])
		return f->seg_process[id] - 1;
	i = fold_store_process(f->b, &f->dict->processes[id]);
	f->seg_process[id] = i + 1;
	return i;
}

/* What this wait was for, below its group. */
static uint32_t reason_node(struct folding *f, uint32_t group, const struct store_total *t)
{
	const char *class = store_wait_reason(t->label);
	const struct waitrule *rule = waitstack_rule(f->dict, f->seg_named, t->stack, class);
	bool idle = rule ? rule->idle : waitrule_idle_by_class(class);
	struct fold_frame frame = f->pub->frames[0];

	frame.name = fold_text(f->b, rule && rule->reason ? rule->reason : class);
	frame.module = fold_text(f->b, idle ? FOLD_IDLE : FOLD_WAITS);
	frame.file = fold_text(f->b, class);
	frame.build_id = fold_text(f->b, rule ? rule->function : "");
	frame.origin = FOLD_OFF;
	return fold_child(f->b, group, fold_add_frame(f->b, &frame));
}

/* --- sums --- */

/* A run of which there are rows before its begin: the wall clock was set back meanwhile. */
static int64_t run_begin(const struct folding *f, const struct store_run_row *run)
{
	int64_t gap = f->sel->gap_to_ns - f->sel->gap_from_ns;

	if (run->from_ns >= f->sel->to_ns || (gap && run->from_ns == f->sel->gap_to_ns))
		return f->sel->from_ns + run->bucket_s * NSEC_PER_SEC;
	return run->from_ns > f->sel->from_ns ? run->from_ns : f->sel->from_ns;
}

/* The time that its rows are of, which is that of whole buckets. */
static void hear_run(struct folding *f, const struct store_run_row *run, int64_t begin)
{
	int64_t from, to;

	fold_slices_counted(f->sel, run->bucket_s, &from, &to);
	from = begin > from ? begin : from;
	to = run->to_ns < to ? run->to_ns : to;
	if (f->sel->gap_from_ns > from && f->sel->gap_to_ns < to) {
		fold_spans_add(&f->heard, from, f->sel->gap_from_ns);
		fold_spans_add(&f->heard, f->sel->gap_to_ns, to);
	} else {
		fold_spans_add(&f->heard, from, to);
	}
}

static void add_run(void *ctx, uint32_t number)
{
	struct folding *f = ctx;
	const struct store_run_row *run = &f->dict->runs[number];
	int64_t from = run_begin(f, run);
	int64_t to = run->to_ns < f->sel->to_ns ? run->to_ns : f->sel->to_ns;

	if (run == f->heard_run)
		return;
	f->heard_run = run;
	hear_run(f, run, from);
	if (!f->pub->from_ns || from < f->pub->from_ns)
		f->pub->from_ns = from;
	if (to > f->pub->to_ns)
		f->pub->to_ns = to;
	if (!f->pub->period_ns || (run->period_ns && run->period_ns < f->pub->period_ns))
		f->pub->period_ns = run->period_ns;
	if (run->cpus > f->pub->cpus)
		f->pub->cpus = run->cpus;
}

/* First row of a thread. */
static void meet_task(struct folding *f, struct seg_task *task, const struct store_total *t)
{
	const struct store_process_row *row = &f->dict->processes[t->process];

	*task = (struct seg_task){.known = true, .self = row->self};
	task->out = row->self &&
		    !(select_wants_process(f->sel, row) && select_wants_thread(f->sel, t->tid));
	if (task->out)
		return;
	task->process = process_of(f, t->process);
	task->group = fold_group_node(f->b, f->opts.group, task->process, t->thread, t->tid);
	task->thread = fold_text(f->b, t->thread);
	task->labels = *t->labels ? fold_text(f->b, t->labels) : NULL;
	if (f->is_with)
		return;
	if (t->run < f->dict->n_runs)
		store_task_runs(f->seg, t->task, t->run, add_run, f);
	if (f->pub->kind->sized && !f->pub->period_ns)
		f->pub->period_ns = store_rate_at(f->seg, t->run, t->process, f->sel->to_ns);
}

static struct seg_task *task_of(struct folding *f, const struct store_total *t)
{
	struct seg_task *task = &f->seg_task[t->task];

	if (!task->known)
		meet_task(f, task, t);
	return task;
}

/* Its numbers are the second kind's in that pass. */
static void add_leaf(struct folding *f, uint32_t node, uint32_t process,
		     const struct store_total *t)
{
	const struct fold_with none = {0}, with = {t->whole_n, t->whole_value};
	struct fold_leaf leaf = {.node = node,
				 .process = process,
				 .tid = t->tid,
				 .label = t->label,
				 .thread = f->seg_task[t->task].thread,
				 .labels = f->seg_task[t->task].labels};

	if (f->is_with) {
		fold_merge_leaf(f->b, &leaf, &with);
		return;
	}
	leaf.slice = t->part;
	leaf.samples = t->whole_n;
	leaf.ns = t->whole_value;
	leaf.max = t->max;
	if (f->opts.with)
		fold_merge_leaf(f->b, &leaf, &none);
	else
		fold_add_leaf(f->b, &leaf);
}

/* First row of a series: its node, and what all its rows have in common. */
static void meet_series(struct folding *f, struct seg_series *x, const struct store_total *t)
{
	const struct seg_task *task = task_of(f, t);
	uint32_t group = task->group;

	*x = (struct seg_series){
		.known = true, .self = task->self, .out = task->out, .process = task->process};
	if (x->out)
		return;
	if (f->opts.reasons && f->pub->kind->kind == STORE_KIND_OFFCPU)
		group = reason_node(f, group, t);
	x->stack = t->stack;
	x->node = f->sparse         ? group :
		  f->opts.innermost ? fold_innermost(f, group, t->stack) :
				      fold_node_of_stack(f, group, t->stack);
}

static void add_cell(struct folding *f, uint32_t node, const struct store_total *t, uint64_t ns)
{
	fold_add_cell(f->b, &(struct fold_cell){.node = node, .slice = t->part, .ns = ns});
}

/* Until the next one is met. */
static struct seg_stack *stack_new(struct folding *f, uint32_t stack)
{
	mem_grow(f->seg_stacks, f->n_seg_stacks, f->cap_seg_stacks);
	f->seg_stacks[f->n_seg_stacks] = (struct seg_stack){.stack = stack};
	return &f->seg_stacks[f->n_seg_stacks++];
}

static struct seg_stack *stack_sum(struct folding *f, uint32_t stack)
{
	uint32_t *at;
	uint64_t *place;
	bool fresh;

	if (f->sparse) {
		place = idmap_ref(&f->seg_place, stack, &fresh);
		if (!fresh)
			return &f->seg_stacks[*place];
		*place = f->n_seg_stacks;
		return stack_new(f, stack);
	}
	at = &f->seg_plain[stack];
	if (*at)
		return &f->seg_stacks[*at - 1];
	*at = (uint32_t)f->n_seg_stacks + 1;
	return stack_new(f, stack);
}

/* Late, the stack until its node is there. With leaf_frames `spent` says which node, and the root
 * has all. */
static uint32_t add_to_stack(struct folding *f, const struct store_total *t, uint64_t ns)
{
	const double variance = f->opts.count ? t->n_variance : t->value_variance;
	struct seg_stack *sum;
	uint32_t node;

	if (f->late) {
		sum = stack_sum(f, t->stack);
		sum->n += t->whole_n;
		sum->ns += ns;
		sum->variance += variance;
		return t->stack;
	}
	node = f->opts.no_stacks ? 0 : fold_leaf_of_stack(f, t->stack);
	fold_add_to_node(f, 0, t->whole_n, ns, variance);
	return node;
}

static int add_by_stack(struct folding *f, const struct store_total *t)
{
	const struct seg_task *task = task_of(f, t);
	const uint64_t n = t->whole_n, ns = f->opts.count ? n : t->whole_value;
	uint32_t node;

	if (task->self)
		f->found_self_n += n;
	if (task->out || (!n && !ns))
		return 0;
	node = add_to_stack(f, t, ns);
	f->pub->processes[task->process].ns += ns;
	f->pub->processes[task->process].samples += n;
	if (f->opts.leaf_frames)
		pairsums_add(&f->pub->spent, task->process, node, t->whole_value);
	if (f->opts.cells && !(f->opts.flat && f->by_files))
		add_cell(f, node, t, ns);
	if (f->opts.leaves)
		add_leaf(f, node, task->process, t);
	return 0;
}

/* Of sums by thread and stack, and label: they are not kept, since most come once. */
static int add_summed(struct folding *f, const struct store_total *t)
{
	const uint64_t n = t->whole_n, ns = f->opts.count ? n : t->whole_value;
	struct seg_series x;

	meet_series(f, &x, t);
	if (x.self)
		f->found_self_n += n;
	if (x.out)
		return 0;
	fold_add_to_node(f, x.node, n, ns, f->opts.count ? t->n_variance : t->value_variance);
	f->pub->processes[x.process].ns += ns;
	f->pub->processes[x.process].samples += n;
	if (f->opts.cells)
		add_cell(f, x.node, t, ns);
	if (f->opts.leaves)
		add_leaf(f, x.node, x.process, t);
	return 0;
}

static int add_total(void *ctx, const struct store_total *t)
{
	struct folding *f = ctx;
	struct seg_series *x;
	uint64_t n = t->whole_n, ns = f->opts.count ? n : t->whole_value;
	uint32_t node;

	if (f->by_stack)
		return add_by_stack(f, t);
	if (!f->seg_series)
		return add_summed(f, t);
	x = &f->seg_series[t->series];
	if (!x->known)
		meet_series(f, x, t);
	if (x->self && !f->is_with)
		f->found_self_n += n;
	if (x->out)
		return 0;
	if (f->is_with) {
		add_leaf(f, x->node, x->process, t);
		return 0;
	}
	x->ns += ns;
	x->n += n;
	x->variance += f->opts.count ? t->n_variance : t->value_variance;
	node = f->sparse ? t->series : x->node; /* until all are placed */
	if (f->opts.cells)
		add_cell(f, node, t, ns);
	if (f->opts.leaves)
		add_leaf(f, node, x->process, t);
	return 0;
}

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct folding *f = ctx;

	uint32_t i;

	(void)thread;
	if (f->pub->kind->class == STORE_GAUGE &&
	    fold_known_process(f->b, fold_store_identity(p), &i) && i < f->n_told)
		return false; /* a later segment has its newest value */
	return p->self || (select_wants_process(f->sel, p) && select_wants_thread(f->sel, tid));
}

static bool wanted_labels(void *ctx, const char *labels)
{
	const struct folding *f = ctx;

	return select_wants_labels(f->sel, labels);
}

/* A run that is selected, of this kind; one of its family that has nothing at all may have lost it.
 * Others have nothing of any kind, as that of family disk: when they recorded says nothing here. */
static bool run_is_asked(const struct folding *f, int64_t run)
{
	const struct store_kind_info *kind = f->pub->kind;
	uint32_t kinds = store_run_kinds(f->seg, run);

	if (f->seg_run && run != f->seg_run)
		return false;
	if (kinds)
		return kinds & 1u << kind->kind;
	return (size_t)run < f->dict->n_runs &&
	       !strcmp(f->dict->runs[run].family, kind->family ? kind->family : "cpu");
}

/* With such buckets sonded records (loaders/lib/bpf/family.h: FAMILY_ALWAYS_S); archives have
 * longer ones. */
#define ALWAYS_S 10

static void note_always(struct folding *f)
{
	for (size_t i = 1; i < f->dict->n_runs && !f->always; i++) {
		const struct store_run_row *r = &f->dict->runs[i];

		f->always = r->present && r->bucket_s >= ALWAYS_S && run_is_asked(f, (int64_t)i) &&
			    r->from_ns < f->sel->to_ns && r->to_ns > f->sel->from_ns;
	}
}

static int add_loss(void *ctx, const struct store_loss_row *l)
{
	struct folding *f = ctx;

	if (run_is_asked(f, l->run))
		fold_add_loss(f->b, &(struct fold_loss){l->reason, l->n, l->from_ns, l->to_ns});
	return 0;
}

/* --- all rows of a run --- */

struct in_slice {
	struct folding *f;
	uint32_t slice;
};

static int add_in_slice(void *ctx, const struct store_total *t)
{
	const struct in_slice *x = ctx;
	struct store_total total = *t;

	total.part = x->slice;
	return add_total(x->f, &total);
}

/* Do all buckets that an archive has in the range begin in one slice? *out is which. */
static bool is_in_slice(const struct folding *f, struct store_segment *seg, uint32_t *out)
{
	const struct selection *sel = f->sel;
	int64_t first, last;

	if (!store_segment_buckets(seg, &first, &last))
		return false;
	first = first > sel->from_ns ? first : sel->from_ns;
	last = last < sel->to_ns ? last : sel->to_ns - 1;
	for (uint32_t i = 0; i < f->pub->n_slices; i++)
		if (first >= f->pub->slices[i].from_ns && last < f->pub->slices[i].to_ns) {
			*out = i;
			return true;
		}
	return false;
}

/* The same rows, slice after slice: each is read once. */
static int sum_slices(struct folding *f, const struct store_query *whole, struct err *e)
{
	cleanup_free int64_t *ends = mem_array(f->pub->n_slices, sizeof(*ends));
	struct in_slice in = {.f = f};
	struct store_query q = *whole;

	for (size_t i = 1; i < f->dict->n_runs; i++)
		if (run_is_asked(f, (int64_t)i))
			fold_spans_note(&f->spans, f->sel, f->dict, (int64_t)i);
	in.slice = f->file_slice;
	if (f->by_files || is_in_slice(f, f->seg, &in.slice))
		return store_totals(f->seg, &q, add_in_slice, &in, e);
	for (size_t i = 0; i < f->pub->n_slices; i++)
		ends[i] = f->pub->slices[i].to_ns;
	q.part_to_ns = ends;
	q.n_parts = f->pub->n_slices;
	return store_totals(f->seg, &q, add_total, f, e);
}

bool fold_takes_day(const struct folding *f, struct store_segment *day)
{
	uint32_t slice;

	if (f->pub->n_slices && !f->by_files && !is_in_slice(f, day, &slice))
		return false;
	return f->pub->kind->kind == STORE_KIND_CPU || f->opts.no_stacks || store_waits_summed(day);
}

/* By what the sums may be that are read. */
static enum store_by sums_by(const struct folding *f)
{
	const bool day = store_segment_is_day(f->seg);

	if (f->opts.no_stacks)
		return STORE_BY_THREAD;
	if (day && f->pub->kind->kind != STORE_KIND_CPU)
		return STORE_BY_LABEL;
	return f->seg_series ? STORE_BY_SERIES : STORE_BY_STACK;
}

static int sum_run(struct folding *f, int64_t run, struct err *e)
{
	struct store_query q = {.from_ns = f->sel->from_ns,
				.to_ns = f->sel->to_ns,
				.kind = f->pub->kind->kind,
				.run = run,
				.want = wanted,
				.want_labels = wanted_labels,
				.ctx = f,
				.tags = f->opts.tags,
				.no_hist = true,
				.by = sums_by(f)};
	int rc;

	f->seg_run = run;
	f->is_with = false;
	rc = f->pub->n_slices ? sum_slices(f, &q, e) : store_totals(f->seg, &q, add_total, f, e);
	if (rc == 0 && f->opts.with && f->pub->kind->with) {
		f->is_with = true;
		q.kind = f->pub->kind->with;
		rc = store_totals(f->seg, &q, add_total, f, e);
	}
	note_always(f);
	if (rc == 0)
		rc = store_losses(f->seg, f->sel->from_ns, f->sel->to_ns, add_loss, f, e);
	if (rc == 0 && f->pub->kind->kind == STORE_KIND_CPU)
		rc = store_endings(f->seg, f->sel->from_ns, f->sel->to_ns, run, endings_add,
				   &f->pub->endings, e);
	return rc;
}

int fold_rows_read(struct folding *f, const char *path, struct err *e)
{
	int64_t run = select_run_in(f->sel, path, 0);
	int rc = 0;

	for (size_t i = 1; rc == 0 && run >= 0; i++) {
		if (!run || store_run_kinds(f->seg, run) & 1u << f->pub->kind->kind)
			rc = sum_run(f, run, e);
		run = select_run_in(f->sel, path, i);
	}
	return rc ? rc : store_own_cost(f->seg, f->sel->from_ns, f->sel->to_ns, &f->pub->own, e);
}
