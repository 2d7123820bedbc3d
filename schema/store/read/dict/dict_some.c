/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dict_some: what rows of a range refer to, of a file that is not archived; see dict_rows.h.
 *
 *  1. Series that have a row in the range. For gauges a row of any earlier time counts as well:
 *     all series of those kinds, where there are.
 *  2. Their tasks; and all tasks of runs that do not cover the whole host, for these say which
 *     processes such a run covers.
 *  3. Their processes; their stacks, with the stacks that these begin as; their frames.
 *  4. Where there are frames of scripts: whether an interpreter's own frame is shown depends on
 *     all that was called from it at any time (tools/fold/fold_scripts.c). So all stacks are read
 *     for how deep each leads to scripts, and which frames are of scripts; a node that is wanted,
 *     and leads to one that is not, gets a child of a script.
 *
 * Arrays are by id, as of a whole one; of what is not put into them no memory is touched. Nodes
 * and frames, most of which are not needed, get new numbers.
 */
#include <errno.h>
#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/dict/dict_rows.h"
#include "schema/store/read/row_scan.h"

/* Calls dict_series_row for what a statement has, whose first two parameters are the range. */
static int series_of(struct store_segment *s, const char *sql, struct err *e)
{
	const struct store_query q = {.from_ns = s->narrow_from_ns, .to_ns = s->narrow_to_ns};
	int64_t first, last;

	row_scan_range(s, &q, &first, &last);
	return dict_rows_bound(s, sql, first, last, s->n_series, dict_series_row, NULL, e);
}

#define SERIES   "SELECT " DICT_SERIES_COLUMNS " FROM series WHERE "
#define STANDING "(5, 8, 9, 13, 19, 23)" /* the kinds that are gauges (store/model/kinds.h) */
#define STANDING_TASKS                                \
	"SELECT id FROM task WHERE kind IN " STANDING \
	" AND run IN (SELECT run FROM run_count WHERE kind IN " STANDING ")"

static int load_series(struct store_segment *s, struct err *e)
{
	int rc = dict_series_slots(s, e);

	if (rc)
		return rc;
	rc = series_of(
		s,
		SERIES
		"id IN (SELECT series FROM sample WHERE ts BETWEEN ?1 AND ?2 UNION SELECT series FROM amount WHERE ts BETWEEN ?1 AND ?2)",
		e);
	if (!rc && sql_number(s->db, "SELECT EXISTS (" STANDING_TASKS ")", 0))
		rc = series_of(s, SERIES "task IN (" STANDING_TASKS ")", e);
	return rc;
}

static int load_tasks(struct store_segment *s, struct err *e)
{
	struct dict_one one = {0};
	int rc = dict_rows_slots(s, "SELECT max(id) FROM task", &s->n_tasks, e);

	if (rc)
		return rc;
	s->tasks = mem_array(s->n_tasks, sizeof(*s->tasks));
	s->tasks[0].thread = "";
	rc = dict_rows_each(s, DICT_TASK_COLUMNS,
			    "task WHERE run IN (SELECT id FROM run WHERE scope <> 0)", s->n_tasks,
			    dict_task_row, NULL, e);
	if (!rc)
		rc = dict_one_open(s, &one, "SELECT " DICT_TASK_COLUMNS " FROM task WHERE id = ?1",
				   e);
	for (size_t i = 1; !rc && i < s->n_series; i++) {
		uint32_t task = s->series_task[i];

		if (task && task < s->n_tasks && !s->tasks[task].thread) {
			s->tasks[task].thread = "";
			rc = dict_one_row(s, &one, task, dict_task_row, NULL, e);
		}
	}
	dict_one_close(&one);
	return rc;
}

static int load_processes(struct store_segment *s, struct err *e)
{
	const size_t n = s->dict.n_processes;
	uint8_t *wanted;
	int rc;

	if (s->has_processes)
		return 0;
	wanted = mem_array(n, 1);
	for (size_t i = 1; i < s->n_tasks; i++)
		if (s->tasks[i].process && s->tasks[i].process < n)
			wanted[s->tasks[i].process] = 1;
	rc = dict_processes_some(s, wanted, e);
	free(wanted);
	return rc;
}

static void script_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	uint32_t *script = ctx;

	script[id] = dict_rows_id(r, 1, s->dict.n_images);
}

/* --- rule 4 --- */

/* Of all stacks, by id. A stack's first `keep` frames are those of `base`. */
struct reaching {
	uint32_t *base;
	uint16_t *keep, *reach; /* reach: its nodes down to that depth lead to a script */
	const struct dict_nodes *nodes;
	size_t n;
};

static uint16_t depth_of(uint64_t depth)
{
	return depth < UINT16_MAX ? (uint16_t)depth : UINT16_MAX;
}

static bool frame_is_script(const struct dict_nodes *nodes, uint64_t frame)
{
	return frame < nodes->n_frames && nodes->script[frame];
}

static void reach_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct reaching *x = ctx;
	uint64_t depth = dict_rows_u32(r, 2), deepest = 0, frame;
	const char *tail = dict_rows_raw(r, 4);
	char *end;

	(void)s;
	x->base[id] = dict_rows_id(r, 1, id); /* comes before */
	x->keep[id] = depth_of(depth);
	for (; *tail >= '0' && *tail <= '9'; tail = *end == ',' ? end + 1 : end) {
		frame = strtoull(tail, &end, 10);
		depth++;
		deepest = frame_is_script(x->nodes, frame) ? depth : deepest;
	}
	deepest = frame_is_script(x->nodes, dict_rows_u32(r, 3)) ? depth + 1 : deepest;
	x->reach[id] = depth_of(deepest ? deepest - 1 : 0);
}

/* What a stack leads to, those that it begins as lead to as well. A base has a smaller id. */
static void reach_hand_on(struct reaching *x)
{
	for (size_t i = x->n; i-- > 1;) {
		uint16_t reach = x->reach[i] < x->keep[i] ? x->reach[i] : x->keep[i];

		if (x->base[i] && x->reach[x->base[i]] < reach)
			x->reach[x->base[i]] = reach;
	}
}

/* *reach, the caller's: by stack, of which there are `n` ids. */
static int scripts_reach(struct store_segment *s, struct dict_nodes *nodes, size_t n,
			 uint16_t **reach, struct err *e)
{
	struct reaching x = {.nodes = nodes, .n = n};
	int rc = dict_rows_bound(
		s,
		"SELECT id, image FROM frame WHERE image IN (SELECT id FROM image WHERE kind >= ?1)",
		STORE_IMAGE_SCRIPT, 0, nodes->n_frames, script_row, nodes->script, e);

	if (rc)
		return rc;
	x.base = mem_array(n, sizeof(*x.base));
	x.keep = mem_array(n, sizeof(*x.keep));
	x.reach = mem_array(n, sizeof(*x.reach));
	rc = dict_rows_bound(s, "SELECT id, base, keep, leaf, tail FROM stack", 0, 0, n, reach_row,
			     &x, e);
	if (!rc)
		reach_hand_on(&x);
	free(x.base);
	free(x.keep);
	*reach = x.reach;
	return rc;
}

static bool any_scripts(const struct store_segment *s)
{
	for (size_t i = 1; i < s->dict.n_images; i++)
		if (s->images[i].kind >= STORE_IMAGE_SCRIPT)
			return true;
	return false;
}

/* reach: as scripts_reach; NULL: not needed. */
static int load_stacks(struct store_segment *s, struct dict_nodes *nodes, uint16_t **reach,
		       struct err *e)
{
	size_t n = 0;
	int rc = dict_rows_slots(s, "SELECT max(id) FROM stack", &n, e);

	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM frame", &nodes->n_frames, e);
	if (rc)
		return rc;
	nodes->script = mem_array(nodes->n_frames, sizeof(*nodes->script));
	for (size_t i = 0; i < s->n_series; i++)
		if (s->series_stack[i] >= n)
			s->series_stack[i] = 0;
	if (any_scripts(s))
		rc = scripts_reach(s, nodes, n, reach, e);
	if (rc)
		return rc;
	rc = stacktree_load_some(s->db, s->series_stack, s->n_series, &s->tree);
	return rc == 0 ? 0 :
			 err_set(e, -EBADMSG, EXIT_STORE,
				 "the store's segment %s is damaged: stacks out of order", s->path);
}

/* --- nodes --- */

/* Those of a series' stack. */
static void nodes_name(const struct store_segment *s, struct dict_nodes *nodes)
{
	nodes->kept = mem_array(s->tree.n + 1, 1);
	nodes->kept[0] = DICT_NODE_NAMED;
	for (size_t i = 1; i < s->n_series; i++)
		for (uint32_t node = s->tree.node[s->series_stack[i]]; !nodes->kept[node];
		     node = s->tree.parent[node])
			nodes->kept[node] = DICT_NODE_NAMED;
}

/* By node: it leads to a script of any stack. The caller's. */
static uint8_t *nodes_lead(const struct stacktree *t, const uint16_t *reach)
{
	uint8_t *leads = mem_array(t->n + 1, 1);
	uint16_t *depth = mem_array(t->n + 1, sizeof(*depth));

	for (size_t i = 1; i < t->n; i++)
		depth[i] = depth_of(depth[t->parent[i]] + 1u);
	for (size_t i = 1; reach && i < t->n_stacks; i++) {
		uint32_t node = t->node[i];

		while (depth[node] > reach[i])
			node = t->parent[node];
		for (; node && !leads[node]; node = t->parent[node])
			leads[node] = 1;
	}
	free(depth);
	return leads;
}

/* Drops all others and renumbers the rest. A node's parent comes before it, and is kept whenever
 * the node is. */
static void nodes_prune(struct store_segment *s, struct dict_nodes *nodes, uint8_t *leads)
{
	struct stacktree *t = &s->tree;
	uint32_t *now = mem_array(t->n + 1, sizeof(*now));
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!nodes->kept[i])
			continue;
		t->parent[n] = now[t->parent[i]];
		t->frame[n] = t->frame[i];
		nodes->kept[n] = nodes->kept[i];
		leads[n] = leads[i];
		now[i] = (uint32_t)n++;
	}
	for (size_t i = 0; i < t->n_stacks; i++)
		t->node[i] = now[t->node[i]];
	free(now);
	t->n = n;
}

static uint32_t any_script(const struct dict_nodes *nodes)
{
	uint32_t frame = 0;

	while (frame < nodes->n_frames && !nodes->script[frame])
		frame++;
	return frame;
}

/* A child for each that leads to a script by none of those that are kept. */
static void nodes_point(struct store_segment *s, struct dict_nodes *nodes, const uint8_t *leads)
{
	struct stacktree *t = &s->tree;
	const size_t n = t->n;
	uint8_t *led = mem_array(n + 1, 1);
	uint32_t script = any_script(nodes);

	for (size_t i = n; i-- > 1;)
		led[t->parent[i]] |= leads[i] || frame_is_script(nodes, t->frame[i]);
	nodes->kept = mem_realloc(nodes->kept, 2 * n + 1);
	for (size_t i = 1; i < n; i++) {
		if (!leads[i] || led[i])
			continue;
		stacktree_grow(t);
		t->parent[t->n] = (uint32_t)i;
		t->frame[t->n] = script;
		nodes->kept[t->n++] = DICT_NODE_BARE;
	}
	free(led);
}

static int load_frames(struct store_segment *s, struct err *e)
{
	struct dict_nodes nodes = {0};
	uint16_t *reach = NULL;
	uint8_t *leads;
	int rc = load_stacks(s, &nodes, &reach, e);

	if (!rc) {
		nodes_name(s, &nodes);
		leads = nodes_lead(&s->tree, reach);
		nodes_prune(s, &nodes, leads);
		nodes_point(s, &nodes, leads);
		free(leads);
		rc = dict_frames_some(s, &nodes, e);
	}
	free(reach);
	free(nodes.kept);
	free(nodes.script);
	return rc;
}

int dict_some_load(struct store_segment *s, struct err *e)
{
	int rc = load_series(s, e);

	/* tasks check what they name against these */
	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM process", &s->dict.n_processes, e);
	if (!rc)
		rc = load_tasks(s, e);
	if (!rc)
		rc = load_processes(s, e);
	if (!rc)
		rc = dict_images_load(s, e);
	return rc ? rc : load_frames(s, e);
}
