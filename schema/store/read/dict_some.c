/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dict_some: what rows of a range refer to, of a file that is not archived; see dict_rows.h.
 *
 *  1. Series that have a row in the range. Of what stands (gauges) a row of any time before it counts as well: all series of those kinds, where there are.
 *  2. Their tasks; and all tasks of runs that do not cover the whole host, for these say which processes such a run covers.
 *  3. Their processes; their stacks, with the stacks that these begin as; their frames.
 *  4. Where there are frames of scripts: whether an interpreter's own frame is shown depends on all that was called from it at any time
 *     (tools/fold/fold_scripts.c). So all stacks are read, and which frames are of scripts; below each node that is wanted a way to one script is kept.
 *
 * Arrays are by id, as of a whole one; of what is not put into them no memory is touched. Nodes and frames, of which the others would be most, are numbered anew.
 */
#include <errno.h>
#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/dict_rows.h"
#include "schema/store/read/row_scan.h"

/* Calls dict_series_row for what a statement has, whose first two parameters are the range. */
static int series_of(struct store_segment *s, const char *sql, struct err *e)
{
	const struct store_query q = {.from_ns = s->narrow_from_ns, .to_ns = s->narrow_to_ns};
	int64_t first, last;

	row_scan_range(s, &q, &first, &last);
	return dict_rows_bound(s, sql, first, last, s->n_series, dict_series_row, NULL, e);
}

#define SERIES "SELECT " DICT_SERIES_COLUMNS " FROM series WHERE "
#define STANDING "(5, 8, 9, 13)" /* the kinds that are gauges (store/model/kinds.h) */
#define STANDING_TASKS "SELECT id FROM task WHERE kind IN " STANDING " AND run IN (SELECT run FROM run_count WHERE kind IN " STANDING ")"

static int load_series(struct store_segment *s, struct err *e)
{
	int rc = dict_series_slots(s, e);

	if (rc)
		return rc;
	rc = series_of(s, SERIES "id IN (SELECT series FROM sample WHERE ts BETWEEN ?1 AND ?2 UNION SELECT series FROM amount WHERE ts BETWEEN ?1 AND ?2)", e);
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
	rc = dict_rows_each(s, DICT_TASK_COLUMNS, "task WHERE run IN (SELECT id FROM run WHERE scope <> 0)", s->n_tasks, dict_task_row, NULL, e);
	if (!rc)
		rc = dict_one_open(s, &one, "SELECT " DICT_TASK_COLUMNS " FROM task WHERE id = ?1", e);
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
	uint8_t *wanted = mem_array(n, 1);
	int rc;

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

/* Rule 4. */
static int load_scripts(struct store_segment *s, struct dict_nodes *nodes, struct err *e)
{
	int rc = stacktree_load(s->db, &s->tree);

	if (rc)
		return err_set(e, -EBADMSG, EXIT_STORE, "the store's segment %s is damaged: stacks out of order", s->path);
	return dict_rows_bound(s, "SELECT id, image FROM frame WHERE image IN (SELECT id FROM image WHERE kind >= ?1)", STORE_IMAGE_SCRIPT, 0, nodes->n_frames,
			       script_row, nodes->script, e);
}

static bool any_scripts(const struct store_segment *s)
{
	for (size_t i = 1; i < s->dict.n_images; i++)
		if (s->images[i].kind >= STORE_IMAGE_SCRIPT)
			return true;
	return false;
}

static int load_stacks(struct store_segment *s, struct dict_nodes *nodes, struct err *e)
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
		return load_scripts(s, nodes, e);
	rc = stacktree_load_some(s->db, s->series_stack, s->n_series, &s->tree);
	return rc == 0 ? 0 : err_set(e, -EBADMSG, EXIT_STORE, "the store's segment %s is damaged: stacks out of order", s->path);
}

/* --- nodes --- */

static bool is_script(const struct store_segment *s, const struct dict_nodes *nodes, size_t node)
{
	uint32_t frame = s->tree.frame[node];

	return frame < nodes->n_frames && nodes->script[frame];
}

/* Those of a series' stack. */
static void nodes_name(const struct store_segment *s, struct dict_nodes *nodes)
{
	nodes->kept = mem_array(s->tree.n + 1, 1);
	nodes->kept[0] = DICT_NODE_NAMED;
	for (size_t i = 1; i < s->n_series; i++)
		for (uint32_t node = s->tree.node[s->series_stack[i]]; !nodes->kept[node]; node = s->tree.parent[node])
			nodes->kept[node] = DICT_NODE_NAMED;
}

/* Below each that is kept, where scripts were called from it, the way to one; by what is kept already, where that leads to one. */
static void nodes_lead(const struct store_segment *s, struct dict_nodes *nodes)
{
	const struct stacktree *t = &s->tree;
	uint32_t *next = mem_array(t->n + 1, sizeof(*next)); /* by node: the child that is, or leads to, a script */

	for (size_t i = t->n; i-- > 1;)
		if ((next[i] || is_script(s, nodes, i)) && (!next[t->parent[i]] || nodes->kept[i]))
			next[t->parent[i]] = (uint32_t)i;
	for (size_t i = 1; i < t->n; i++)
		if (nodes->kept[i] && next[i] && !nodes->kept[next[i]] && !is_script(s, nodes, i))
			nodes->kept[next[i]] = DICT_NODE_BARE;
	free(next);
}

/* All others go; what is left is numbered anew. A node's parent comes before it, and is kept where it is. */
static void nodes_prune(struct store_segment *s, struct dict_nodes *nodes)
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
		now[i] = (uint32_t)n++;
	}
	for (size_t i = 0; i < t->n_stacks; i++)
		t->node[i] = now[t->node[i]];
	free(now);
	t->n = t->cap = n;
	t->parent = mem_realloc(t->parent, n * sizeof(*t->parent));
	t->frame = mem_realloc(t->frame, n * sizeof(*t->frame));
}

static int load_frames(struct store_segment *s, struct err *e)
{
	struct dict_nodes nodes = {0};
	int rc = load_stacks(s, &nodes, e);

	if (!rc) {
		nodes_name(s, &nodes);
		nodes_lead(s, &nodes);
		nodes_prune(s, &nodes);
		rc = dict_frames_some(s, &nodes, e);
	}
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
