/* SPDX-License-Identifier: Apache-2.0 */
/* transaction: The SQL of writing is in the table below and nowhere else, but for
 * facts, which declare theirs. */
#include "schema/store/write/commit/transaction.h"

#include <stdio.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/model/merge_sql.h"
#include "schema/store/write/writer.h"

static const char *const sql[ST_N] = {
	[ST_BEGIN] = "BEGIN IMMEDIATE",
	[ST_COMMIT] = "COMMIT",
	[ST_ROLLBACK] = "ROLLBACK",
	[ST_TEXT] = "INSERT INTO text(value) VALUES(?1)",
	[ST_CONTAINER_FIND] =
		"SELECT id FROM container WHERE hash = ?1 AND runtime_id = ?2 AND cgroup = ?3 AND name = ?4"
		" AND runtime = ?5 AND image = ?6 AND project = ?7 AND service = ?8 AND labels = ?9"
		" AND started = ?10 AND restarts = ?11",
	[ST_CONTAINER_SAME] =
		"SELECT id FROM container WHERE hash = ?1 AND runtime_id = ?2 AND cgroup = ?3 AND (name = '') = ?4"
		" ORDER BY id DESC LIMIT 1",
	[ST_CONTAINER_NAME] =
		"UPDATE container SET name = ?4, runtime = ?5, image = ?6, project = ?7, service = ?8, labels = ?9,"
		" started = ?10, restarts = ?11 WHERE id = ?12",
	[ST_CONTAINER] =
		"INSERT INTO container(hash, runtime_id, cgroup, name, runtime, image, project, service, labels,"
		" started, restarts) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
	[ST_IMAGE_FIND] =
		"SELECT id FROM image WHERE hash = ?1 AND kind = ?2 AND path = ?3 AND name = ?4"
		" AND build_id = ?5 AND key = ?6",
	[ST_IMAGE_LEARN] =
		"UPDATE image SET build_id = ?2, hash = ?3 WHERE id = ?1 AND build_id = ''",
	[ST_IMAGE] =
		"INSERT INTO image(hash, kind, path, name, build_id, key) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_PROCESS_FIND] =
		"SELECT id FROM process WHERE pid = ?2 AND start_ticks = ?3 AND exec_id = ?4",
	[ST_PROCESS] =
		"INSERT INTO process(pid, start_ticks, exec_id, ppid, comm, exe, args, cgroup, unit, container, self,"
		" uid, start_ns, args_base, args_keep, args_end, end_ns, how, status, lang, runtime, linking,"
		" libc)"
		" VALUES(?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
	[ST_PROCESS_LEARN] =
		"UPDATE process SET ppid = iif(?5, ?5, ppid), comm = iif(?6 = '' OR (?6 = '" STORE_PROCESS_UNKNOWN
		"' AND comm <> ''), comm, ?6),"
		" exe = iif(?7, ?7, exe), args = iif(?15, ?8, args), cgroup = iif(?9, ?9, cgroup),"
		" unit = iif(?10, ?10, unit), container = iif(?11, ?11, container), self = max(self, ?12),"
		" args_base = iif(?15, ?15, args_base), args_keep = iif(?15, ?16, args_keep),"
		" args_end = iif(?15, ?17, args_end), end_ns = iif(?19, ?18, end_ns), how = iif(?19, ?19, how),"
		" status = iif(?19, ?20, status), lang = iif(?21, ?21, lang),"
		" runtime = iif(?22, ?22, runtime), linking = iif(?23, ?23, linking), libc = iif(?24, ?24, libc) WHERE id = ?1",
	[ST_SOURCE_FIND] = "SELECT id FROM source WHERE hash = ?1 AND path = ?2",
	[ST_SOURCE] = "INSERT INTO source(hash, path) VALUES(?1, ?2)",
	[ST_FUNCTION_FIND] =
		"SELECT id FROM function WHERE hash = ?1 AND image = ?2 AND line = ?3 AND name = ?4"
		" AND source = ?5 AND file = ''",
	[ST_FUNCTION] =
		"INSERT INTO function(hash, image, line, name, source, file) VALUES(?1, ?2, ?3, ?4, ?5, '')",
	[ST_FRAME] =
		"INSERT INTO frame(image, offset, function, line, flags, outer) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_FRAME_NAME] =
		"UPDATE frame SET function = ?2, line = ?3, outer = ?4, flags = iif(?4, flags | 1, flags)"
		" WHERE id = ?1 AND (function = 0 OR (line = 0 AND outer = 0))",
	[ST_STACK] = "INSERT INTO stack(base, keep, leaf, tail) VALUES(?1, ?2, ?3, ?4)",
	[ST_TASK] = "INSERT INTO task(run, process, tid, kind, thread) VALUES(?1, ?2, ?3, ?4, ?5)",
	[ST_TASK_LABEL] = "INSERT INTO task_label(task, labels) VALUES(?1, ?2)",
	[ST_SERIES] = "INSERT INTO series(task, stack, label) VALUES(?1, ?2, ?3)",
	[ST_SAMPLE] = "INSERT INTO sample(ts, series, n) VALUES(?1, ?2, ?3)"
		      " ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_LOSS] = "INSERT INTO loss_row(ts, run, reason, n) VALUES(?1, ?2, ?3, ?4)"
		    " ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_COST] =
		"INSERT INTO cost_row(ts, run, program, cpu_ns, runs, rss_bytes, private_bytes, map_bytes)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET cpu_ns = cpu_ns + excluded.cpu_ns,"
		" runs = runs + excluded.runs, rss_bytes = excluded.rss_bytes,"
		" private_bytes = excluded.private_bytes, map_bytes = excluded.map_bytes",
	[ST_UNWOUND] =
		"INSERT INTO unwound_row(ts, run, exe, image, reason, n) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
		" ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_END] =
		"INSERT INTO end_row(ts, run, comm, container, how, status, n) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
		" ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_AMOUNT] =
		"INSERT INTO amount(ts, series, n, value, max, hist) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
		" ON CONFLICT DO UPDATE SET " MERGE_AMOUNT,
	[ST_AMOUNT_ERROR] =
		"INSERT INTO amount_error_row(ts, series, n_variance, value_variance) VALUES(?1, ?2, ?3, ?4)"
		" ON CONFLICT DO UPDATE SET " MERGE_AMOUNT_ERROR,
	[ST_GAUGE] =
		"INSERT OR IGNORE INTO amount(ts, series, n, value, max, hist) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_GAUGE_AGAIN] =
		"UPDATE amount SET n = ?3, value = ?4, max = ?5, hist = ?6 WHERE ts = ?1 AND series = ?2",
	[ST_RATE] =
		"INSERT OR REPLACE INTO rate_row(run, process, ts, rate) SELECT ?1, ?2, ?3, ?4 WHERE ?4 IS NOT"
		" (SELECT rate FROM rate_row WHERE run = ?1 AND process = ?2 AND ts <= ?3 ORDER BY ts DESC LIMIT 1)",
	[ST_NOTE] =
		"INSERT OR REPLACE INTO process_note(run, process, key, value) VALUES(?1, ?2, ?3, ?4)",
	[ST_RUN_COUNT] =
		"INSERT INTO run_count(run, kind, n) VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_WAIT] = "INSERT INTO wait_row(ts, task, class, flags, n, total_ns, max_ns, hist)"
		    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET " MERGE_WAIT,
	[ST_WAKE] = "INSERT INTO wake_row(ts, task, class, waker, context, stack, n, total_ns)"
		    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
		    " ON CONFLICT DO UPDATE SET " MERGE_N_TOTAL,
	[ST_CULPRIT] =
		"INSERT INTO culprit_row(ts, task, culprit, kind, n, total_ns) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
		" ON CONFLICT DO UPDATE SET " MERGE_N_TOTAL,
	[ST_THROTTLE] =
		"INSERT INTO throttle_row(ts, run, cgroup, periods, throttled, throttled_ns)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET " MERGE_THROTTLE,
	[ST_SLOWED] =
		"INSERT INTO slowed_row(ts, run, step, stack_rate) VALUES(?1, ?2, ?3, ?4)"
		" ON CONFLICT DO UPDATE SET step = max(step, excluded.step), stack_rate = excluded.stack_rate",
	[ST_REQUEST] =
		"INSERT INTO request_row(ts, run, process, side, protocol, service, operation, status, result, n, total_ns, max_ns,"
		" request_bytes, response_bytes, hist) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
		" ON CONFLICT DO UPDATE SET n = n + excluded.n, total_ns = total_ns + excluded.total_ns, max_ns = max(max_ns, excluded.max_ns),"
		" request_bytes = request_bytes + excluded.request_bytes, response_bytes = response_bytes + excluded.response_bytes,"
		" hist = hist_sum(hist, excluded.hist)",
	[ST_REQUEST_PHASE] =
		"INSERT INTO request_phase_row(ts, run, process, side, protocol, service, operation, status, result, phase, n, total_ns, max_ns, hist)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
		" ON CONFLICT DO UPDATE SET n = n + excluded.n, total_ns = total_ns + excluded.total_ns, max_ns = max(max_ns, excluded.max_ns),"
		" hist = hist_sum(hist, excluded.hist)",
	[ST_STEAL] =
		"INSERT INTO steal_row(ts, run, steal_ns, idle_ns, cpu_ns) VALUES(?1, ?2, ?3, ?4, ?5)"
		" ON CONFLICT DO UPDATE SET " MERGE_STEAL,
	[ST_WAIT_ON] = "INSERT INTO wait_on_row(ts, task, class, object, waker, stack, n, total_ns)"
		       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
		       " ON CONFLICT DO UPDATE SET " MERGE_N_TOTAL,
	[ST_RUN_FIND] = "SELECT id FROM run WHERE token = ?1",
	[ST_RUN] =
		"INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted,"
		" recording) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
	[ST_RUN_UPDATE] =
		"UPDATE run SET to_ns = max(to_ns, ?2), accounted = ?3, state = ?4 WHERE id = ?1",
	[ST_RUN_PERIOD] =
		"INSERT OR REPLACE INTO run_period(run, from_ns, period_ns) VALUES(?1, ?2, ?3)",
	[ST_CLOCK] = "INSERT OR REPLACE INTO clock(utc_ns, boot_offset_ns) VALUES(?1, ?2)",
};

void commit_fail(struct commit *c, int rc)
{
	c->rc = rc;
	snprintf(c->why, sizeof(c->why), "%s, %d", sqlite3_errmsg(c->seg->db),
		 sqlite3_extended_errcode(c->seg->db));
}

sqlite3_stmt *commit_stmt(struct commit *c, enum commit_stmt which)
{
	sqlite3_stmt *st;

	if (c->rc != SQLITE_OK)
		return NULL;
	st = segment_stmt(c->seg, (int)which, sql[which]);
	if (!st)
		commit_fail(c, sqlite3_errcode(c->seg->db));
	return st;
}

bool commit_step(struct commit *c, sqlite3_stmt *st, uint32_t *value)
{
	int rc = sqlite3_step(st);
	bool row = rc == SQLITE_ROW;

	if (row && value)
		*value = (uint32_t)sqlite3_column_int64(st, 0);
	if (!row && rc != SQLITE_DONE)
		commit_fail(c, rc);
	sqlite3_reset(st);
	return row;
}

uint32_t commit_insert(struct commit *c, sqlite3_stmt *st)
{
	commit_step(c, st, NULL);
	return c->rc == SQLITE_OK ? (uint32_t)sqlite3_last_insert_rowid(c->seg->db) : 0;
}

void commit_exec(struct commit *c, enum commit_stmt which)
{
	sqlite3_stmt *st = commit_stmt(c, which);

	if (st)
		commit_step(c, st, NULL);
}

/* In the ring's segment; `kind` DICT_KINDS: the stack that ends at the node. */
static uint32_t fine_row(const struct dict *d, int kind, uint32_t index)
{
	const struct pool *p = &d->fine_row[kind];

	return index && index <= p->n ? *(const uint32_t *)pool_at(p, index) : 0;
}

static void fine_mark(struct dict *d, int kind, uint32_t index, uint32_t row)
{
	struct pool *p = &d->fine_row[kind];

	while (p->n < index)
		pool_add(p);
	*(uint32_t *)pool_at(p, index) = row;
}

uint32_t commit_row(const struct commit *c, enum dict_kind kind, uint32_t index)
{
	if (c->fine)
		return fine_row(c->dict, kind, index);
	return index ? *(const uint32_t *)pool_at(&c->dict->pool[kind], index) : 0;
}

uint32_t commit_own(const struct commit *c, uint32_t node)
{
	return c->fine ? fine_row(c->dict, DICT_KINDS, node) :
			 dict_at(c->dict, DICT_NODE, dict_node, node)->own;
}

static void set_row(struct commit *c, enum dict_kind kind, uint32_t index, uint32_t row)
{
	if (c->fine)
		fine_mark(c->dict, (int)kind, index, row);
	else
		*(uint32_t *)pool_at(&c->dict->pool[kind], index) = row;
}

static void set_own(struct commit *c, uint32_t node, uint32_t row)
{
	if (c->fine)
		fine_mark(c->dict, DICT_KINDS, node, row);
	else
		dict_at(c->dict, DICT_NODE, dict_node, node)->own = row;
}

void commit_mark(struct commit *c, enum dict_kind kind, uint32_t index, uint32_t row)
{
	set_row(c, kind, index, row);
	if (!c->fine && index > c->dict->touched[kind])
		c->dict->touched[kind] = index;
	mem_grow(c->undo, c->n_undo, c->cap_undo);
	c->undo[c->n_undo++] = (struct commit_undo){.kind = (uint8_t)kind, .index = index};
}

void commit_mark_stack(struct commit *c, uint32_t node, uint32_t row)
{
	set_own(c, node, row);
	if (!c->fine && node > c->dict->touched_own)
		c->dict->touched_own = node;
	mem_grow(c->undo, c->n_undo, c->cap_undo);
	c->undo[c->n_undo++] = (struct commit_undo){.kind = DICT_KINDS, .index = node};
}

uint32_t commit_shared(struct commit *c, enum dict_kind kind, uint32_t index, enum commit_stmt find,
		       enum commit_stmt insert,
		       void (*bind)(struct commit *, sqlite3_stmt *, const void *),
		       const void *entry, bool *found)
{
	sqlite3_stmt *st = commit_stmt(c, find);
	uint32_t row = 0;

	if (!st)
		return 0;
	bind(c, st, entry);
	*found = commit_step(c, st, &row);
	if (!*found) {
		st = commit_stmt(c, insert);
		if (!st)
			return 0;
		bind(c, st, entry);
		row = commit_insert(c, st);
	}
	if (row)
		commit_mark(c, kind, index, row);
	return row;
}

void commit_sum(struct commit *c, uint32_t series, uint64_t n)
{
	uint32_t index = dict_at(c->dict, DICT_SERIES, dict_series, series)->task;
	const struct dict_task *t = index ? dict_at(c->dict, DICT_TASK, dict_task, index) : NULL;

	if (t)
		commit_sum_of(c, t->run, t->kind, n);
}

void commit_sum_of(struct commit *c, uint32_t run, uint32_t kind, uint64_t n)
{
	uint32_t i = 0;

	while (i < c->n_sums && (c->sums[i].run != run || c->sums[i].kind != kind))
		i++;
	if (i == c->n_sums) {
		mem_grow(c->sums, c->n_sums, c->cap_sums);
		c->sums[c->n_sums++] = (struct commit_sum){.run = run, .kind = kind};
	}
	c->sums[i].n += n;
}

void commit_sums(struct commit *c, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < c->n_sums; i++) {
		sqlite3_stmt *st = commit_stmt(c, ST_RUN_COUNT);

		if (!st)
			return;
		sqlite3_bind_int64(st, 1, runs[c->sums[i].run - 1].row);
		sqlite3_bind_int64(st, 2, c->sums[i].kind);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)c->sums[i].n);
		commit_step(c, st, NULL);
	}
}

void commit_args_forget(struct commit *c)
{
	for (uint32_t i = 0; i < COMMIT_ARGS; i++) {
		free(c->args[i].args);
		c->args[i] = (struct commit_args){0};
	}
	c->args_segment = c->seg ? c->seg->serial : 0;
}

void commit_undo_all(struct commit *c)
{
	for (uint32_t i = 0; i < c->n_undo; i++) {
		if (c->undo[i].kind == DICT_KINDS)
			set_own(c, c->undo[i].index, 0);
		else
			set_row(c, (enum dict_kind)c->undo[i].kind, c->undo[i].index, 0);
	}
	commit_args_forget(c); /* their texts may be gone */
	if (!sqlite3_get_autocommit(c->seg->db))
		sqlite3_exec(c->seg->db, "ROLLBACK", NULL, NULL, NULL);
}
