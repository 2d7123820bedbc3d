/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_large: what is made of the stacks that have something, where a node for each of their frames
 * is too much: a tree of the largest nodes.
 *
 * 1. The dictionary's nodes are in runs: node i + 1 is mostly the callee of node i. In a run the
 *    total changes only where a stack ends or another run begins, so all totals are known by as
 *    many numbers as there are stacks and runs, whatever their depth.
 * 2. A total is never above its caller's: all nodes above some total are a tree, in each run its
 *    first nodes. The total is the lowest that leaves no more nodes than are asked for.
 * 3. A stack whose last frame is not there counts in a frame called "(smaller frames)" below its
 *    last frame that is: sums are those of all stacks, whatever is left out.
 */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_parts.h"

/* nodes of a dictionary: an array of them takes 16 MB */
#define LARGE (4u << 20)

/* stacks and threads of a file that have many nodes in each of many groups */
#define GROUPED_STACKS 20000
#define GROUPED_TASKS  50

bool fold_is_grouped(const struct folding *f, const struct store_dict *d)
{
	return f->opts.group != FOLD_BY_NONE && f->opts.most_nodes && !f->opts.with &&
	       !f->opts.innermost && d->n_stacks > GROUPED_STACKS && d->n_tasks > GROUPED_TASKS;
}

bool fold_is_large(const struct folding *f)
{
	return f->dict->n_stacks > LARGE && (f->opts.flat || f->opts.most_nodes) && !f->opts.with &&
	       !f->opts.leaf_frames && !f->opts.no_stacks;
}

/* --- the largest nodes --- */

struct step {           /* from its end up to the next one's, or to the begin of the run */
	uint32_t end;   /* a node of the dictionary */
	uint64_t n, ns; /* what each of these nodes has in total */
	uint32_t next;  /* the same run's step before it in order of ends, + 1; 0: none */
};

struct run {
	uint32_t begin;
	uint32_t steps;      /* the last one by its end, + 1 */
	uint32_t kept;       /* its first node that is left out */
	uint32_t first_node; /* in `nodes`: of its first one */
	uint32_t smaller;    /* the fold's node of what is left out of it, 0: not made */
};

struct largest {
	struct folding *f;
	uint32_t root;          /* the fold's node that they are below */
	const uint32_t *parent; /* the dictionary's */
	struct run *runs;       /* in order of their begins */
	size_t n_runs, cap_runs;
	struct step *steps;
	size_t n_steps, cap_steps;
	uint32_t *nodes; /* nodes of the fold: those of a run one behind the other */
	uint32_t n_nodes;
};

static uint32_t begin_of(const struct largest *x, uint32_t node)
{
	while (node > 1 && x->parent[node] == node - 1)
		node--;
	return node;
}

static int by_begin(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static struct run *run_of(const struct largest *x, uint32_t node)
{
	size_t low = 0, high = x->n_runs;

	while (high - low > 1) {
		const size_t mid = (low + high) / 2;

		*(x->runs[mid].begin <= node ? &low : &high) = mid;
	}
	return &x->runs[low];
}

/* Runs of the stacks that have something, and of their callers. */
static void runs_find(struct largest *x)
{
	struct idmap known = {0};

	for (size_t i = 0; i < x->f->n_seg_stacks; i++)
		for (uint32_t at = x->f->seg_stacks[i].stack; at;) {
			const uint32_t begin = begin_of(x, at);
			bool fresh;

			idmap_ref(&known, begin, &fresh);
			if (!fresh)
				break;
			mem_grow(x->runs, x->n_runs, x->cap_runs);
			x->runs[x->n_runs++] = (struct run){.begin = begin};
			at = x->parent[begin];
		}
	idmap_release(&known);
	if (x->n_runs)
		qsort(x->runs, x->n_runs, sizeof(*x->runs), by_begin);
}

static void step_add(struct largest *x, struct step s)
{
	struct run *r;

	if (!s.end)
		return; /* what is below the root is in no run */
	r = run_of(x, s.end);
	s.next = r->steps;
	mem_grow(x->steps, x->n_steps, x->cap_steps);
	x->steps[x->n_steps++] = s;
	r->steps = (uint32_t)x->n_steps;
}

static int last_first(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->end < y->end) - (x->end > y->end);
}

/* Its steps in order, each with what those behind it have, too. The total of its first node. */
static struct step run_sum(struct largest *x, struct run *r, struct step **room, size_t *cap)
{
	struct step total = {0};
	size_t n = 0;

	for (uint32_t at = r->steps; at; at = x->steps[at - 1].next) {
		mem_grow(*room, n, *cap);
		(*room)[n++] = x->steps[at - 1];
	}
	if (n)
		qsort(*room, n, sizeof(**room), last_first);
	n = 0;
	for (uint32_t at = r->steps; at; at = x->steps[at - 1].next, n++) {
		total.n += (*room)[n].n;
		total.ns += (*room)[n].ns;
		x->steps[at - 1].end = (*room)[n].end;
		x->steps[at - 1].n = total.n;
		x->steps[at - 1].ns = total.ns;
	}
	return total;
}

/* A run's callees have larger numbers: they come first. */
static void totals_find(struct largest *x)
{
	cleanup_free struct step *room = NULL;
	size_t cap = 0;

	for (size_t i = 0; i < x->f->n_seg_stacks; i++) {
		const struct seg_stack *s = &x->f->seg_stacks[i];

		step_add(x, (struct step){.end = s->stack, .n = s->n, .ns = s->ns});
	}
	for (size_t i = x->n_runs; i-- > 0;) {
		struct step total = run_sum(x, &x->runs[i], &room, &cap);

		total.end = x->parent[x->runs[i].begin];
		step_add(x, total);
	}
}

struct length {
	uint64_t total;
	size_t nodes;
};

static int most_first(const void *a, const void *b)
{
	const struct length *x = a, *y = b;

	return (x->total < y->total) - (x->total > y->total);
}

/* Of a run's step: to where it reaches, both included. */
static uint32_t step_begin(const struct largest *x, const struct run *r, const struct step *s)
{
	return s->next ? x->steps[s->next - 1].end + 1 : r->begin;
}

struct lengths {
	struct length *v;
	size_t n, cap;
};

static void lengths_add(struct lengths *l, const struct largest *x)
{
	for (size_t i = 0; i < x->n_runs; i++)
		for (uint32_t at = x->runs[i].steps; at; at = x->steps[at - 1].next) {
			const struct step *s = &x->steps[at - 1];
			const uint32_t begin = step_begin(x, &x->runs[i], s);

			if (s->end < begin)
				continue;
			mem_grow(l->v, l->n, l->cap);
			l->v[l->n++] = (struct length){s->ns, s->end - begin + 1};
		}
}

/* Nodes above it are kept. It is not to be used again. */
static uint64_t limit_find(struct lengths *l, size_t most)
{
	uint64_t limit = 0;
	size_t kept = 0;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), most_first);
	for (size_t i = 0; i < l->n && !limit; i++) {
		limit = kept + l->v[i].nodes > most ? l->v[i].total : 0;
		kept += l->v[i].nodes;
	}
	free(l->v);
	*l = (struct lengths){0};
	return limit;
}

/* The first of its nodes that is left out. */
static uint32_t kept_until(const struct largest *x, const struct run *r, uint64_t limit)
{
	for (uint32_t at = r->steps; at; at = x->steps[at - 1].next)
		if (!limit || x->steps[at - 1].ns > limit)
			return x->steps[at - 1].end + 1;
	return r->begin;
}

/* The fold's node of one of the dictionary's; of one that is left out, of its smaller frames. */
static uint32_t node_at(struct largest *x, uint32_t stack)
{
	struct fold_build *b = x->f->b;
	struct run *r;

	if (!stack)
		return x->root;
	r = run_of(x, stack);
	if (stack < r->kept)
		return x->nodes[r->first_node + (stack - r->begin)];
	if (!r->smaller) {
		const uint32_t caller = r->kept > r->begin ?
						x->nodes[r->first_node + (r->kept - 1 - r->begin)] :
						node_at(x, x->parent[r->begin]);

		r->smaller = b->pub.nodes[caller].frame == b->pub.smaller ?
				     caller :
				     fold_child(b, caller, b->pub.smaller);
	}
	return r->smaller;
}

static void nodes_make(struct largest *x, uint64_t limit)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n_runs; i++) {
		struct run *r = &x->runs[i];

		r->kept = kept_until(x, r, limit);
		r->first_node = (uint32_t)n;
		n += r->kept - r->begin;
		x->f->pub->left_out += x->steps[r->steps - 1].end + 1 - r->kept;
	}
	x->nodes = mem_array(n + 1, sizeof(*x->nodes));
	fold_expect_nodes(x->f->b, n);
	for (size_t i = 0; i < x->n_runs; i++) {
		const struct run *r = &x->runs[i];
		uint32_t caller = r->kept > r->begin ? node_at(x, x->parent[r->begin]) : 0;

		for (uint32_t at = r->begin; at < r->kept; at++) {
			caller = fold_child_of(x->f, caller, at);
			x->nodes[r->first_node + (at - r->begin)] = caller;
		}
	}
}

static uint32_t smaller_frame(struct fold_build *b)
{
	const char *none = fold_text(b, "");

	return fold_add_frame(b, &(struct fold_frame){.name = fold_text(b, "(smaller frames)"),
						      .module = none,
						      .module_path = none,
						      .build_id = none,
						      .file = none,
						      .named = true,
						      .origin = FOLD_UNKNOWN});
}

/* The totals of the stacks at hand, below a node of the fold. */
static struct largest largest_of(struct folding *f, uint32_t root)
{
	struct largest x = {.f = f, .root = root, .parent = f->dict->stack_parent};

	runs_find(&x);
	totals_find(&x);
	return x;
}

static void largest_release(struct largest *x)
{
	free(x->runs);
	free(x->steps);
	free(x->nodes);
}

static void place_above(struct largest *x, uint64_t limit)
{
	struct folding *f = x->f;

	if (limit)
		f->pub->smaller = smaller_frame(f->b);
	nodes_make(x, limit);
	for (size_t i = 0; i < f->n_seg_stacks; i++)
		f->seg_stacks[i].node = node_at(x, f->seg_stacks[i].stack);
	largest_release(x);
}

void fold_place_largest(struct folding *f)
{
	struct largest x = largest_of(f, 0);
	struct lengths l = {0};

	lengths_add(&l, &x);
	place_above(&x, limit_find(&l, f->opts.most_nodes));
}

/* --- group by group --- */

static int by_group(const void *a, const void *b, void *series)
{
	const struct seg_series *v = series;
	const struct seg_series *x = &v[*(const uint32_t *)a], *y = &v[*(const uint32_t *)b];

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

/* The stacks of one group, whose series are in order of their stacks. */
static void group_stacks(struct folding *f, const uint32_t *of, size_t n)
{
	f->n_seg_stacks = 0;
	for (size_t i = 0; i < n; i++) {
		const struct seg_series *x = &f->seg_series[of[i]];
		struct seg_stack *s;

		if (!i || x->stack != f->seg_stacks[f->n_seg_stacks - 1].stack) {
			mem_grow(f->seg_stacks, f->n_seg_stacks, f->cap_seg_stacks);
			f->seg_stacks[f->n_seg_stacks++] = (struct seg_stack){.stack = x->stack};
		}
		s = &f->seg_stacks[f->n_seg_stacks - 1];
		s->n += x->n;
		s->ns += x->ns;
	}
}

static void group_place(struct folding *f, const uint32_t *of, size_t n, uint64_t limit)
{
	struct largest l;
	size_t at = 0;

	group_stacks(f, of, n);
	l = largest_of(f, f->seg_series[of[0]].node);
	place_above(&l, limit);
	for (size_t i = 0; i < n; i++) {
		struct seg_series *x = &f->seg_series[of[i]];

		at += x->stack != f->seg_stacks[at].stack;
		x->node = f->seg_stacks[at].node;
	}
	f->n_seg_stacks = 0;
}

/* How many of these series are of the first one's group. */
static size_t group_size(const struct folding *f, const uint32_t *of, size_t n)
{
	size_t end = 1;

	while (end < n && f->seg_series[of[end]].node == f->seg_series[of[0]].node)
		end++;
	return end;
}

/* Of all groups the largest nodes: first their totals alone. */
void fold_place_series(struct folding *f)
{
	cleanup_free uint32_t *order = mem_array(f->dict->n_series + 1, sizeof(*order));
	struct lengths lengths = {0};
	uint64_t limit;
	size_t n = 0, size;

	for (size_t i = 0; i < f->dict->n_series; i++)
		if (f->seg_series[i].known && !f->seg_series[i].out)
			order[n++] = (uint32_t)i;
	if (n)
		qsort_r(order, n, sizeof(*order), by_group, f->seg_series);
	for (size_t i = 0; i < n; i += size) {
		struct largest x;

		size = group_size(f, order + i, n - i);
		group_stacks(f, order + i, size);
		x = largest_of(f, 0);
		lengths_add(&lengths, &x);
		largest_release(&x);
	}
	limit = limit_find(&lengths, f->opts.most_nodes);
	for (size_t i = 0; i < n; i += size) {
		size = group_size(f, order + i, n - i);
		group_place(f, order + i, size, limit);
	}
}
