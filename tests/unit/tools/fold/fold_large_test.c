/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a dictionary that is made up: sums and the largest nodes are those of all stacks, added
 * up frame by frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/unit/test.h"
#include "tools/fold/fold_parts.h"

#define NODES  600
#define FRAMES 40
#define STACKS 120

static uint32_t state = 7;

static uint32_t below(uint32_t n)
{
	state = state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

struct made {
	struct folding f;
	struct store_dict d;
	uint32_t parent[NODES], frame[NODES];
	struct store_frame_row frames[FRAMES];
	char names[FRAMES][16];
	uint64_t total[NODES];
	uint64_t all;
};

/* Runs of some length: each begins below any node before it. */
static void tree_make(struct made *m)
{
	for (uint32_t i = 1; i < NODES; i++) {
		m->parent[i] = below(12) ? i - 1 : below(i);
		m->frame[i] = 1 + below(FRAMES - 1);
	}
	for (uint32_t i = 1; i < FRAMES; i++) {
		snprintf(m->names[i], sizeof(m->names[i]), "function_%u", i);
		m->frames[i] =
			(struct store_frame_row){.function = i, .name = m->names[i], .file = ""};
	}
	m->d = (struct store_dict){.stack_parent = m->parent,
				   .stack_frame = m->frame,
				   .n_stacks = NODES,
				   .frames = m->frames,
				   .n_frames = FRAMES};
}

static void stacks_make(struct made *m)
{
	struct folding *f = &m->f;

	for (int i = 0; i < STACKS; i++) {
		const uint32_t stack = i ? below(NODES) : 0; /* 0: no frame */
		const uint64_t n = 1 + below(1000);
		bool fresh;
		uint64_t *place = idmap_ref(&f->seg_place, stack, &fresh);

		if (fresh) {
			*place = f->n_seg_stacks;
			mem_grow(f->seg_stacks, f->n_seg_stacks, f->cap_seg_stacks);
			f->seg_stacks[f->n_seg_stacks++] = (struct seg_stack){.stack = stack};
		}
		f->seg_stacks[*place].n += n;
		f->seg_stacks[*place].ns += n * 10;
		m->all += n * 10;
		for (uint32_t at = stack; at; at = m->parent[at])
			m->total[at] += n * 10;
	}
}

static void made_init(struct made *m, bool flat, size_t most)
{
	struct folding *f = &m->f;

	*m = (struct made){0};
	tree_make(m);
	f->b = fold_begin();
	f->pub = &f->b->pub;
	f->dict = &m->d;
	f->late = f->by_stack = f->sparse = true;
	f->opts = (struct fold_opts){.flat = flat, .most_nodes = most, .functions = flat};
	f->seg_frame = mem_array(FRAMES + 1, sizeof(*f->seg_frame));
	f->seg_image = mem_array(2, sizeof(*f->seg_image));
	f->seg_function = mem_array(FRAMES + 1, sizeof(*f->seg_function));
	stacks_make(m);
}

static void made_release(struct made *m)
{
	struct folding *f = &m->f;

	fold_free(f->pub);
	free(f->seg_frame);
	free(f->seg_image);
	free(f->seg_function);
	free(f->seg_stacks);
	free(f->seen);
	free(f->path);
	idmap_release(&f->seg_place);
}

static uint32_t number_of(const char *name)
{
	return !strncmp(name, "function_", 9) ? (uint32_t)atoi(name + 9) : 0;
}

/* --- the largest nodes --- */

/* What all stacks have in nodes with these frames, the last one first. */
static uint64_t path_total(const struct made *m, const struct fold *f, uint32_t node)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i < NODES; i++) {
		uint32_t at = i, n = node;

		while (at && n && number_of(f->frames[f->nodes[n].frame].name) == m->frame[at]) {
			at = m->parent[at];
			n = f->nodes[n].parent;
		}
		if (!at && !n)
			sum += m->total[i];
	}
	return sum;
}

static size_t above(const struct made *m, uint64_t limit)
{
	size_t n = 0;

	for (uint32_t i = 1; i < NODES; i++)
		n += m->total[i] > limit;
	return n;
}

static bool is_smaller(const struct fold *f, uint32_t node)
{
	return f->smaller && f->nodes[node].frame == f->smaller;
}

static void check_largest(size_t most)
{
	struct made *m = malloc(sizeof(*m));
	uint64_t smallest = UINT64_MAX;
	size_t kept = 0;
	struct fold *f;

	made_init(m, false, most);
	fold_place_largest(&m->f);
	fold_point_at_nodes(&m->f);
	f = fold_end(m->f.b);
	assert_int_equal(f->nodes[0].total_ns, m->all);
	for (uint32_t i = 1; i < f->n_nodes; i++) {
		if (is_smaller(f, i))
			continue;
		kept++;
		/* nodes that are alike may be kept in part: where none is left out it is all */
		assert_true(f->nodes[i].total_ns <= path_total(m, f, i));
		if (!f->smaller)
			assert_int_equal(f->nodes[i].total_ns, path_total(m, f, i));
		smallest = f->nodes[i].total_ns < smallest ? f->nodes[i].total_ns : smallest;
	}
	assert_true(kept <= most);
	if (f->smaller)
		assert_true(above(m, 0) > most);
	else
		assert_true(kept <= above(m, 0));
	made_release(m);
	free(m);
}

TEST(all_nodes_are_there_where_there_is_room)
{
	for (int i = 0; i < 20; i++)
		check_largest(NODES);
}

TEST(the_largest_nodes_have_all_that_the_stacks_have)
{
	for (size_t most = 1; most < NODES; most += 7)
		check_largest(most);
}

/* --- of groups --- */

#define GROUPS 3
#define SERIES 300
#define BUSY   100 /* how much more the first group has */

static void series_make(struct made *m, uint64_t sums[GROUPS])
{
	struct folding *f = &m->f;
	struct fold_frame frame = f->pub->frames[0];
	uint32_t group[GROUPS];
	char name[16];

	for (uint32_t i = 0; i < GROUPS; i++) {
		snprintf(name, sizeof(name), "group %u", i);
		frame.name = fold_text(f->b, name);
		group[i] = fold_child(f->b, 0, fold_add_frame(f->b, &frame));
	}
	f->by_stack = f->late = false;
	f->n_seg_stacks = 0;
	f->seg_series = mem_array(SERIES, sizeof(*f->seg_series));
	m->d.n_series = SERIES;
	for (uint32_t i = 1; i < SERIES; i++) {
		const uint32_t g = below(GROUPS);
		const uint64_t n = (1 + below(1000)) * (g ? 1 : BUSY);

		f->seg_series[i] = (struct seg_series){.known = true,
						       .node = group[g],
						       .stack = below(NODES),
						       .n = n,
						       .ns = n * 10};
		sums[g] += n * 10;
	}
}

static uint32_t group_of(const struct fold *f, uint32_t node)
{
	while (f->nodes[node].parent)
		node = f->nodes[node].parent;
	return (uint32_t)atoi(f->frames[f->nodes[node].frame].name + 6);
}

static void check_groups(size_t most, size_t kept[GROUPS])
{
	struct made *m = malloc(sizeof(*m));
	uint64_t sums[GROUPS] = {0};
	struct fold *f;

	made_init(m, false, most);
	series_make(m, sums);
	fold_place_series(&m->f);
	for (uint32_t i = 1; i < SERIES; i++)
		fold_add_to_node(&m->f, m->f.seg_series[i].node, m->f.seg_series[i].n,
				 m->f.seg_series[i].ns, 0);
	f = fold_end(m->f.b);
	for (uint32_t i = 1; i < f->n_nodes; i++) {
		if (!f->nodes[i].parent)
			assert_int_equal(f->nodes[i].total_ns, sums[group_of(f, i)]);
		else if (!is_smaller(f, i))
			kept[group_of(f, i)]++;
	}
	free(m->f.seg_series);
	made_release(m);
	free(m);
}

TEST(groups_share_the_largest_nodes_by_what_they_have)
{
	for (size_t most = 1; most < 3 * NODES; most += 40) {
		size_t kept[GROUPS] = {0};

		check_groups(most, kept);
		assert_true(kept[0] + kept[1] + kept[2] <= most);
		if (most > 40 && most < 100) /* more than a third of them */
			assert_true(kept[0] > most / 2 && kept[0] > kept[1] + kept[2]);
	}
}

/* --- sums of functions --- */

TEST(functions_count_each_stack_once)
{
	struct made *m = malloc(sizeof(*m));
	uint64_t self[FRAMES] = {0}, total[FRAMES] = {0};
	struct fold *f;

	made_init(m, true, 0);
	fold_sum_functions(&m->f);
	f = fold_end(m->f.b);
	for (size_t i = 0; i < m->f.n_seg_stacks; i++) {
		const struct seg_stack *s = &m->f.seg_stacks[i];
		bool has[FRAMES] = {false};

		self[s->stack ? m->frame[s->stack] : 0] += s->ns;
		for (uint32_t at = s->stack; at; at = m->parent[at]) {
			total[m->frame[at]] += has[m->frame[at]] ? 0 : s->ns;
			has[m->frame[at]] = true;
		}
		total[0] += s->stack ? 0 : s->ns;
	}
	assert_int_equal(f->nodes[0].total_ns, m->all);
	for (uint32_t i = 0; i < f->n_frames; i++) {
		assert_int_equal(f->flat[i].self_ns, self[number_of(f->frames[i].name)]);
		assert_int_equal(f->flat[i].total_ns, total[number_of(f->frames[i].name)]);
	}
	made_release(m);
	free(m);
}

/* --- leaves --- */

TEST(slices_are_joined_until_leaves_are_few)
{
	struct folding f = {.b = fold_begin(), .opts = {.most_leaves = 10}};
	uint64_t sum = 0;

	f.pub = &f.b->pub;
	f.pub->slices = mem_array(64, sizeof(*f.pub->slices));
	f.pub->n_slices = 63;
	f.pub->slice_ns = 10;
	for (uint32_t i = 0; i < 63; i++) {
		f.pub->slices[i] = (struct fold_slice){.from_ns = i * 10, .to_ns = i * 10 + 10};
		for (uint32_t k = 0; k < 3; k++)
			fold_add_leaf(f.b, &(struct fold_leaf){
						   .node = k, .slice = i, .samples = i, .ns = 2});
	}
	fold_join_leaves(&f);
	assert_int_equal(f.pub->n_slices, 2);
	assert_int_equal(f.pub->n_leaves, 6);
	assert_int_equal(f.pub->slice_ns, 320);
	assert_int_equal(f.pub->slices[1].from_ns, 320);
	assert_int_equal(f.pub->slices[1].to_ns, 630);
	for (size_t i = 0; i < f.pub->n_leaves; i++)
		sum += f.pub->leaves[i].ns;
	assert_int_equal(sum, 63 * 3 * 2);
	assert_int_equal(f.pub->leaves[0].samples, 31 * 32 / 2);
	fold_free(f.pub);
}

static void add_leaves(struct folding *f, uint32_t n, uint32_t slice)
{
	for (uint32_t k = 0; k < n; k++)
		fold_add_leaf(f->b, &(struct fold_leaf){
					    .node = k, .slice = slice, .samples = 1, .ns = 2});
}

TEST(where_leaves_differ_there_is_one_slice_and_later_leaves_are_joined_to_them)
{
	struct folding f = {.b = fold_begin(), .opts = {.most_leaves = 10}};

	f.pub = &f.b->pub;
	f.pub->slices = mem_array(8, sizeof(*f.pub->slices));
	f.pub->n_slices = 8;
	f.pub->slice_ns = 10;
	for (uint32_t i = 0; i < 8; i++)
		f.pub->slices[i] = (struct fold_slice){.from_ns = i * 10, .to_ns = i * 10 + 10};
	add_leaves(&f, 9, 3);
	add_leaves(&f, 9, 5);
	fold_join_leaves(&f);
	assert_int_equal(f.pub->n_slices, 1);
	assert_int_equal(f.pub->n_leaves, 9);
	assert_int_equal(f.pub->slice_ns, 80);
	assert_int_equal(f.pub->slices[0].to_ns, 80);
	for (int segment = 0; segment < 40; segment++) {
		add_leaves(&f, 9, 0);
		fold_join_leaves(&f);
		assert_in_range(f.pub->n_leaves, 9, 18);
	}
	fold_join_last(&f);
	assert_int_equal(f.pub->n_leaves, 9);
	for (size_t i = 0; i < 9; i++) {
		assert_int_equal(f.pub->leaves[i].samples, 42);
		assert_int_equal(f.pub->leaves[i].ns, 84);
	}
	fold_free(f.pub);
}
