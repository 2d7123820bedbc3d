/* SPDX-License-Identifier: Apache-2.0 */
/* commit: one batch, one transaction. The SQL of writing stands in the table below, and nowhere else. */
#include "schema/store/commit.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/argshare.h"
#include "schema/store/stacktree.h"

#define CLOCK_STEP_NS 1000000 /* the wall clock was set, not slewed */

static const char *const sql[ST_N] = {
	[ST_BEGIN] = "BEGIN IMMEDIATE",
	[ST_COMMIT] = "COMMIT",
	[ST_ROLLBACK] = "ROLLBACK",
	[ST_TEXT] = "INSERT INTO text(value) VALUES(?1)",
	[ST_CONTAINER_FIND] = "SELECT id FROM container WHERE hash = ?1 AND runtime_id = ?2 AND cgroup = ?3 AND name = ?4"
			      " AND runtime = ?5 AND image = ?6",
	[ST_CONTAINER] = "INSERT INTO container(hash, runtime_id, cgroup, name, runtime, image)"
			 " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_IMAGE_FIND] = "SELECT id FROM image WHERE hash = ?1 AND kind = ?2 AND path = ?3 AND name = ?4"
			  " AND build_id = ?5 AND key = ?6",
	[ST_IMAGE] = "INSERT INTO image(hash, kind, path, name, build_id, key) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_PROCESS_FIND] = "SELECT id FROM process WHERE pid = ?2 AND start_ticks = ?3 AND exec_id = ?4",
	[ST_PROCESS] = "INSERT INTO process(pid, start_ticks, exec_id, ppid, comm, exe, args, cgroup, unit, container, self,"
		       " uid, start_ns, args_base, args_keep, args_end)"
		       " VALUES(?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
	[ST_PROCESS_LEARN] = "UPDATE process SET ppid = iif(?5, ?5, ppid), comm = iif(?6 = '', comm, ?6),"
			     " exe = iif(?7, ?7, exe), args = iif(?15, ?8, args), cgroup = iif(?9, ?9, cgroup),"
			     " unit = iif(?10, ?10, unit), container = iif(?11, ?11, container), self = max(self, ?12),"
			     " args_base = iif(?15, ?15, args_base), args_keep = iif(?15, ?16, args_keep),"
			     " args_end = iif(?15, ?17, args_end) WHERE id = ?1",
	[ST_SOURCE_FIND] = "SELECT id FROM source WHERE hash = ?1 AND path = ?2",
	[ST_SOURCE] = "INSERT INTO source(hash, path) VALUES(?1, ?2)",
	[ST_FUNCTION_FIND] = "SELECT id FROM function WHERE hash = ?1 AND image = ?2 AND line = ?3 AND name = ?4"
			     " AND source = ?5 AND file = ''",
	[ST_FUNCTION] = "INSERT INTO function(hash, image, line, name, source, file) VALUES(?1, ?2, ?3, ?4, ?5, '')",
	[ST_FRAME] = "INSERT INTO frame(image, offset, function, line, flags, outer) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[ST_FRAME_NAME] = "UPDATE frame SET function = ?2, line = ?3, outer = ?4, flags = iif(?4, flags | 1, flags)"
			  " WHERE id = ?1 AND (function = 0 OR (line = 0 AND outer = 0))",
	[ST_STACK] = "INSERT INTO stack(base, keep, leaf, tail) VALUES(?1, ?2, ?3, ?4)",
	[ST_TASK] = "INSERT INTO task(run, process, tid, kind, thread) VALUES(?1, ?2, ?3, ?4, ?5)",
	[ST_SERIES] = "INSERT INTO series(task, stack) VALUES(?1, ?2)",
	[ST_SAMPLE] = "INSERT INTO sample(ts, series, n) VALUES(?1, ?2, ?3)"
		      " ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_LOSS] = "INSERT INTO loss_row(ts, run, reason, n) VALUES(?1, ?2, ?3, ?4)"
		    " ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_COST] = "INSERT INTO cost_row(ts, run, program, cpu_ns, runs, rss_bytes, private_bytes, map_bytes)"
		    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET cpu_ns = cpu_ns + excluded.cpu_ns,"
		    " runs = runs + excluded.runs, rss_bytes = excluded.rss_bytes,"
		    " private_bytes = excluded.private_bytes, map_bytes = excluded.map_bytes",
	[ST_UNWOUND] = "INSERT INTO unwound_row(ts, run, exe, image, reason, n) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
		       " ON CONFLICT DO UPDATE SET n = n + excluded.n",
	[ST_RUN_FIND] = "SELECT id FROM run WHERE token = ?1",
	[ST_RUN] = "INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted)"
		   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
	[ST_RUN_UPDATE] = "UPDATE run SET to_ns = max(to_ns, ?2), accounted = ?3, state = ?4 WHERE id = ?1",
	[ST_RUN_PERIOD] = "INSERT OR REPLACE INTO run_period(run, from_ns, period_ns) VALUES(?1, ?2, ?3)",
	[ST_CLOCK] = "INSERT OR REPLACE INTO clock(utc_ns, boot_offset_ns) VALUES(?1, ?2)",
};

/* --- statements --- */

sqlite3_stmt *commit_stmt(struct commit *c, enum commit_stmt which)
{
	sqlite3_stmt *st;

	if (c->rc != SQLITE_OK)
		return NULL;
	st = segment_stmt(c->seg, (int)which, sql[which]);
	if (!st)
		c->rc = sqlite3_errcode(c->seg->db);
	return st;
}

/* Run it; true if it gave a row. Its bindings stay. */
static bool commit_step(struct commit *c, sqlite3_stmt *st, uint32_t *value)
{
	int rc = sqlite3_step(st);
	bool row = rc == SQLITE_ROW;

	if (row && value)
		*value = (uint32_t)sqlite3_column_int64(st, 0);
	if (!row && rc != SQLITE_DONE)
		c->rc = rc;
	sqlite3_reset(st);
	return row;
}

uint32_t commit_insert(struct commit *c, sqlite3_stmt *st)
{
	commit_step(c, st, NULL);
	return c->rc == SQLITE_OK ? (uint32_t)sqlite3_last_insert_rowid(c->seg->db) : 0;
}

static void commit_exec(struct commit *c, enum commit_stmt which)
{
	sqlite3_stmt *st = commit_stmt(c, which);

	if (st)
		commit_step(c, st, NULL);
}

static void bind_str(sqlite3_stmt *st, int i, const char *s)
{
	sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
}

static void bind_hash(sqlite3_stmt *st, uint64_t hash)
{
	sqlite3_bind_int64(st, 1, (sqlite3_int64)(hash & 0x7fffffff));
}

/* --- the dictionary --- */

void commit_mark(struct commit *c, enum dict_kind kind, uint32_t index, uint32_t row)
{
	*(uint32_t *)pool_at(&c->dict->pool[kind], index) = row;
	if (index > c->dict->touched[kind])
		c->dict->touched[kind] = index;
	mem_grow(c->undo, c->n_undo, c->cap_undo);
	c->undo[c->n_undo++] = (struct commit_undo){.kind = (uint8_t)kind, .index = index};
}

void commit_mark_stack(struct commit *c, uint32_t node, uint32_t row)
{
	dict_at(c->dict, DICT_NODE, dict_node, node)->own = row;
	if (node > c->dict->touched_own)
		c->dict->touched_own = node;
	mem_grow(c->undo, c->n_undo, c->cap_undo);
	c->undo[c->n_undo++] = (struct commit_undo){.kind = DICT_KINDS, .index = node};
}

/* Find the entry by content, or insert it; `bind` gives both statements the same parameters. */
static uint32_t commit_shared(struct commit *c, enum dict_kind kind, uint32_t index, enum commit_stmt find,
			      enum commit_stmt insert, void (*bind)(struct commit *, sqlite3_stmt *, const void *),
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

static uint32_t commit_text(struct commit *c, uint32_t index)
{
	struct dict_text *t = index ? dict_at(c->dict, DICT_TEXT, dict_text, index) : NULL;
	sqlite3_stmt *st;
	uint32_t row;

	if (!t || t->row)
		return t ? t->row : 0;
	st = commit_stmt(c, ST_TEXT);
	if (!st)
		return 0;
	bind_str(st, 1, t->s);
	row = commit_insert(c, st);
	if (row)
		commit_mark(c, DICT_TEXT, index, row);
	return row;
}

static void bind_container(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct dict_container *x = entry;

	(void)c;
	bind_hash(st, hash_str(hash_str(HASH_SEED, x->runtime_id), x->cgroup));
	bind_str(st, 2, x->runtime_id);
	bind_str(st, 3, x->cgroup);
	bind_str(st, 4, x->name);
	bind_str(st, 5, x->runtime);
	bind_str(st, 6, x->image);
}

static uint32_t commit_container(struct commit *c, uint32_t index)
{
	struct dict_container *x = index ? dict_at(c->dict, DICT_CONTAINER, dict_container, index) : NULL;
	bool found;

	if (!x || x->row)
		return x ? x->row : 0;
	return commit_shared(c, DICT_CONTAINER, index, ST_CONTAINER_FIND, ST_CONTAINER, bind_container, x, &found);
}

static void bind_image(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct dict_image *i = entry;

	(void)c;
	bind_hash(st, hash_str(hash_str(HASH_SEED, i->path), i->build_id));
	sqlite3_bind_int64(st, 2, i->kind);
	bind_str(st, 3, i->path);
	bind_str(st, 4, i->name);
	bind_str(st, 5, i->build_id);
	bind_str(st, 6, i->key);
}

static uint32_t commit_image(struct commit *c, uint32_t index)
{
	struct dict_image *i = index ? dict_at(c->dict, DICT_IMAGE, dict_image, index) : NULL;
	bool found;

	if (!i || i->row)
		return i ? i->row : 0;
	return commit_shared(c, DICT_IMAGE, index, ST_IMAGE_FIND, ST_IMAGE, bind_image, i, &found);
}

/* --- processes --- */

static void commit_args_forget(struct commit *c)
{
	for (uint32_t i = 0; i < COMMIT_ARGS; i++) {
		free(c->args[i].args);
		c->args[i] = (struct commit_args){0};
	}
	c->args_segment = c->seg ? c->seg->serial : 0;
}

/* This command line becomes the one that others of the program share. */
static struct commit_args *commit_args_base(struct commit *c, struct commit_args *slot, uint32_t exe, const char *args)
{
	sqlite3_stmt *st = commit_stmt(c, ST_TEXT);
	uint32_t row;

	if (!st)
		return NULL;
	bind_str(st, 1, args);
	row = commit_insert(c, st);
	if (!row)
		return NULL;
	free(slot->args);
	*slot = (struct commit_args){.exe = exe, .row = row, .args = mem_strdup(args)};
	return slot;
}

/* The base of the program that leaves the least to write, and how many bases the program has. */
static struct commit_args *commit_args_best(struct commit *c, uint32_t exe, const char *args, struct argshare *share,
					    uint32_t *n)
{
	struct commit_args *best = NULL;

	*n = 0;
	for (uint32_t i = 0; i < COMMIT_ARGS; i++) {
		struct argshare s;

		if (!c->args[i].args || c->args[i].exe != exe)
			continue;
		++*n;
		s = argshare_of(c->args[i].args, args);
		if (best && s.middle_bytes >= share->middle_bytes)
			continue;
		best = &c->args[i];
		*share = s;
	}
	return best;
}

/* What to share with: a base that saves half; else these args become one more base of the program, up to
 * COMMIT_ARGS_EXE of them; then one that saves a quarter will do. NULL: see c->rc. */
static struct commit_args *commit_args_find(struct commit *c, uint32_t exe, const char *args, struct argshare *share)
{
	size_t len = strlen(args);
	struct commit_args *base;
	uint32_t n;

	if (c->args_segment != c->seg->serial)
		commit_args_forget(c);
	base = commit_args_best(c, exe, args, share, &n);
	if (base && share->middle_bytes <= (n < COMMIT_ARGS_EXE ? len / 2 : len - len / 4))
		return base;
	base = commit_args_base(c, &c->args[c->next_args++ % COMMIT_ARGS], exe, args);
	if (base)
		*share = argshare_of(base->args, args);
	return base;
}

/* A process as it is written: ids are those of the segment. */
struct commit_process {
	struct dict_process p;
	uint32_t args_base;
	struct argshare args;
};

static void bind_process(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct commit_process *x = entry;
	const struct dict_process *p = &x->p;

	(void)c;
	sqlite3_bind_int64(st, 2, p->pid);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)p->start_ticks);
	sqlite3_bind_int64(st, 4, p->exec_id);
	if (sqlite3_bind_parameter_count(st) == 4)
		return;
	sqlite3_bind_int64(st, 5, p->ppid);
	bind_str(st, 6, p->comm);
	sqlite3_bind_int64(st, 7, p->exe);
	sqlite3_bind_text(st, 8, x->args.middle ? x->args.middle : "", (int)x->args.middle_bytes, SQLITE_STATIC);
	sqlite3_bind_int64(st, 9, p->cgroup);
	sqlite3_bind_int64(st, 10, p->unit);
	sqlite3_bind_int64(st, 11, p->container);
	sqlite3_bind_int64(st, 12, p->self);
	sqlite3_bind_int64(st, 13, p->uid);
	sqlite3_bind_int64(st, 14, p->start_ns);
	sqlite3_bind_int64(st, 15, x->args_base);
	sqlite3_bind_int64(st, 16, (sqlite3_int64)x->args.keep);
	sqlite3_bind_int64(st, 17, (sqlite3_int64)x->args.end);
}

/* What is known of it now. */
static struct commit_process commit_process_now(struct commit *c, uint32_t index)
{
	struct dict_process *p = dict_at(c->dict, DICT_PROCESS, dict_process, index);
	struct commit_process now = {0};
	const struct commit_args *base;

	pthread_mutex_lock(&c->dict->lock);
	now.p = *p;
	pthread_mutex_unlock(&c->dict->lock);
	now.p.exe = commit_text(c, now.p.exe);
	now.p.cgroup = commit_text(c, now.p.cgroup);
	now.p.unit = commit_text(c, now.p.unit);
	now.p.container = commit_container(c, now.p.container);
	base = *now.p.args ? commit_args_find(c, now.p.exe, now.p.args, &now.args) : NULL;
	now.args_base = base ? base->row : 0;
	return now;
}

static void commit_process_learn(struct commit *c, uint32_t row, const struct commit_process *now)
{
	sqlite3_stmt *st = commit_stmt(c, ST_PROCESS_LEARN);

	if (!st)
		return;
	bind_process(c, st, now);
	sqlite3_bind_int64(st, 1, row);
	commit_step(c, st, NULL);
}

static uint32_t commit_process(struct commit *c, uint32_t index)
{
	struct dict_process *p = index ? dict_at(c->dict, DICT_PROCESS, dict_process, index) : NULL;
	struct commit_process now;
	bool found = false;
	uint32_t row;

	if (!p || p->row)
		return p ? p->row : 0;
	now = commit_process_now(c, index);
	row = commit_shared(c, DICT_PROCESS, index, ST_PROCESS_FIND, ST_PROCESS, bind_process, &now, &found);
	if (found)
		commit_process_learn(c, row, &now);
	return row;
}

static void bind_source(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct dict_source *s = entry;

	(void)c;
	bind_hash(st, hash_str(HASH_SEED, s->path));
	bind_str(st, 2, s->path);
}

static uint32_t commit_source(struct commit *c, uint32_t index)
{
	struct dict_source *s = index ? dict_at(c->dict, DICT_SOURCE, dict_source, index) : NULL;
	bool found;

	if (!s || s->row)
		return s ? s->row : 0;
	return commit_shared(c, DICT_SOURCE, index, ST_SOURCE_FIND, ST_SOURCE, bind_source, s, &found);
}

static void bind_function(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct dict_function *f = entry;

	bind_hash(st, hash_str(HASH_SEED, f->name));
	sqlite3_bind_int64(st, 2, commit_image(c, f->image));
	sqlite3_bind_int64(st, 3, f->line);
	bind_str(st, 4, f->name);
	sqlite3_bind_int64(st, 5, commit_source(c, f->source));
}

static uint32_t commit_function(struct commit *c, uint32_t index)
{
	struct dict_function *f = index ? dict_at(c->dict, DICT_FUNCTION, dict_function, index) : NULL;
	bool found;

	if (!f || f->row)
		return f ? f->row : 0;
	return commit_shared(c, DICT_FUNCTION, index, ST_FUNCTION_FIND, ST_FUNCTION, bind_function, f, &found);
}

/* What stands at the frame, as far as is known now: ids of the segment. */
struct commit_place {
	uint32_t function, line, outer;
};

static struct commit_place commit_place(struct commit *c, uint32_t index)
{
	struct dict_frame *f = dict_at(c->dict, DICT_FRAME, dict_frame, index);
	struct commit_place p;

	pthread_mutex_lock(&c->dict->lock);
	if (f->named_function)
		p = (struct commit_place){f->named_function, f->named_line, f->named_outer};
	else
		p = (struct commit_place){f->function, f->line, f->outer};
	pthread_mutex_unlock(&c->dict->lock);
	p.function = commit_function(c, p.function);
	p.outer = commit_frame(c, p.outer); /* interned before it: as deep as functions are inlined */
	return p;
}

uint32_t commit_frame(struct commit *c, uint32_t index)
{
	struct dict_frame *f = index ? dict_at(c->dict, DICT_FRAME, dict_frame, index) : NULL;
	struct commit_place p;
	uint32_t image, row;
	sqlite3_stmt *st;

	if (!f || f->row)
		return f ? f->row : 0;
	p = commit_place(c, index);
	image = commit_image(c, f->image);
	st = commit_stmt(c, ST_FRAME);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, image);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)f->offset);
	sqlite3_bind_int64(st, 3, p.function);
	sqlite3_bind_int64(st, 4, p.line);
	sqlite3_bind_int64(st, 5, f->flags | (p.outer ? 1 : 0));
	sqlite3_bind_int64(st, 6, p.outer);
	row = commit_insert(c, st);
	if (row)
		commit_mark(c, DICT_FRAME, index, row);
	return row;
}

static uint32_t commit_task(struct commit *c, uint32_t index, const struct commit_run *runs)
{
	struct dict_task *t = dict_at(c->dict, DICT_TASK, dict_task, index);
	uint32_t process, row;
	sqlite3_stmt *st;

	if (t->row)
		return t->row;
	process = commit_process(c, t->process);
	st = commit_stmt(c, ST_TASK);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, runs[t->run - 1].row);
	sqlite3_bind_int64(st, 2, process);
	sqlite3_bind_int64(st, 3, t->tid);
	sqlite3_bind_int64(st, 4, t->kind);
	bind_str(st, 5, t->thread);
	row = commit_insert(c, st);
	if (row)
		commit_mark(c, DICT_TASK, index, row);
	return row;
}

static uint32_t commit_series(struct commit *c, uint32_t index, const struct commit_run *runs)
{
	struct dict_series *s = dict_at(c->dict, DICT_SERIES, dict_series, index);
	uint32_t task, stack, row;
	sqlite3_stmt *st;

	if (s->row)
		return s->row;
	task = commit_task(c, s->task, runs);
	stack = stacktree_put(c, s->stack);
	st = commit_stmt(c, ST_SERIES);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, task);
	sqlite3_bind_int64(st, 2, stack);
	row = commit_insert(c, st);
	if (row)
		commit_mark(c, DICT_SERIES, index, row);
	return row;
}

/* --- what was learnt later --- */

static void commit_learnt_process(struct commit *c, uint32_t index)
{
	struct commit_process now;
	uint32_t row = dict_at(c->dict, DICT_PROCESS, dict_process, index)->row;

	if (!row)
		return; /* what is known now is written at first use */
	now = commit_process_now(c, index);
	commit_process_learn(c, row, &now);
}

static void commit_learnt_frame(struct commit *c, uint32_t index)
{
	uint32_t row = dict_at(c->dict, DICT_FRAME, dict_frame, index)->row;
	struct commit_place p;
	sqlite3_stmt *st;

	if (!row)
		return;
	p = commit_place(c, index);
	st = commit_stmt(c, ST_FRAME_NAME);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, row);
	sqlite3_bind_int64(st, 2, p.function);
	sqlite3_bind_int64(st, 3, p.line);
	sqlite3_bind_int64(st, 4, p.outer);
	commit_step(c, st, NULL);
}

/* Take the list; its entries may become dirty again from now on. */
static struct dict_dirty dirty_take(struct dict *d, struct dict_dirty *list, enum dict_kind kind)
{
	struct dict_dirty took;

	pthread_mutex_lock(&d->lock);
	took = *list;
	*list = (struct dict_dirty){0};
	for (uint32_t i = 0; i < took.n; i++) {
		if (kind == DICT_FRAME)
			dict_at(d, DICT_FRAME, dict_frame, took.items[i])->dirty = false;
		else
			dict_at(d, DICT_PROCESS, dict_process, took.items[i])->dirty = false;
	}
	pthread_mutex_unlock(&d->lock);
	return took;
}

static void dirty_put_back(struct dict *d, struct dict_dirty *list, const struct dict_dirty *took)
{
	pthread_mutex_lock(&d->lock);
	for (uint32_t i = 0; i < took->n; i++) {
		mem_grow(list->items, list->n, list->cap);
		list->items[list->n++] = took->items[i];
	}
	pthread_mutex_unlock(&d->lock);
}

/* --- rows --- */

static int order_by_key(const void *a, const void *b)
{
	const struct commit_order *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void commit_rows(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	sqlite3_stmt *st;

	if (b->n_rows > c->cap_order) {
		c->cap_order = b->cap_rows;
		c->order = mem_realloc(c->order, c->cap_order * sizeof(*c->order));
	}
	for (uint32_t i = 0; i < b->n_rows && c->rc == SQLITE_OK; i++)
		c->order[i] = (struct commit_order){.ts = b->rows[i].ts - c->seg->t0, .n = b->rows[i].n,
						    .row = commit_series(c, b->rows[i].series, runs)};
	st = b->n_rows ? commit_stmt(c, ST_SAMPLE) : NULL;
	if (!st)
		return;
	qsort(c->order, b->n_rows, sizeof(*c->order), order_by_key);
	for (uint32_t i = 0; i < b->n_rows && c->rc == SQLITE_OK; i++) {
		sqlite3_bind_int64(st, 1, c->order[i].ts);
		sqlite3_bind_int64(st, 2, c->order[i].row);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)c->order[i].n);
		commit_step(c, st, NULL);
	}
}

static void commit_loss(struct commit *c, int64_t ts, int64_t run, const char *reason, uint64_t n)
{
	sqlite3_stmt *st = commit_stmt(c, ST_LOSS);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	bind_str(st, 3, reason);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)n);
	commit_step(c, st, NULL);
}

static void commit_cost(struct commit *c, const struct batch_cost *x, int64_t run)
{
	sqlite3_stmt *st = commit_stmt(c, ST_COST);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	bind_str(st, 3, x->program);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)x->cost.cpu_ns);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)x->cost.runs);
	sqlite3_bind_int64(st, 6, (sqlite3_int64)x->cost.rss_bytes);
	sqlite3_bind_int64(st, 7, (sqlite3_int64)x->cost.private_bytes);
	sqlite3_bind_int64(st, 8, (sqlite3_int64)x->cost.map_bytes);
	commit_step(c, st, NULL);
}

static void commit_unwound(struct commit *c, const struct batch_unwound *x, int64_t run)
{
	uint32_t exe = commit_text(c, x->exe), image = commit_image(c, x->image);
	sqlite3_stmt *st = commit_stmt(c, ST_UNWOUND);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, exe);
	sqlite3_bind_int64(st, 4, image);
	sqlite3_bind_int64(st, 5, x->reason);
	sqlite3_bind_int64(st, 6, (sqlite3_int64)x->n);
	commit_step(c, st, NULL);
}

/* --- runs and the clock --- */

static void commit_run_insert(struct commit *c, struct commit_run *r)
{
	sqlite3_stmt *st = commit_stmt(c, ST_RUN);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)r->token);
	bind_str(st, 2, r->family);
	bind_str(st, 3, r->options);
	sqlite3_bind_int64(st, 4, r->scope);
	sqlite3_bind_int64(st, 5, r->bucket_s);
	sqlite3_bind_int64(st, 6, r->cpus);
	sqlite3_bind_int64(st, 7, r->from_ns);
	sqlite3_bind_int64(st, 8, r->to_ns);
	sqlite3_bind_int64(st, 9, r->state);
	sqlite3_bind_int64(st, 10, getpid());
	sqlite3_bind_int64(st, 11, (sqlite3_int64)r->accounted);
	r->row = commit_insert(c, st);
}

static void commit_run_update(struct commit *c, const struct commit_run *r)
{
	sqlite3_stmt *st = commit_stmt(c, ST_RUN_UPDATE);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->row);
	sqlite3_bind_int64(st, 2, r->to_ns);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)r->accounted);
	sqlite3_bind_int64(st, 4, r->state);
	commit_step(c, st, NULL);
}

/* A segment that was left may be joined again: after it was thought removed, say. */
static uint32_t commit_run_find(struct commit *c, const struct commit_run *r)
{
	sqlite3_stmt *st = commit_stmt(c, ST_RUN_FIND);
	uint32_t row = 0;

	if (st) {
		sqlite3_bind_int64(st, 1, (sqlite3_int64)r->token);
		commit_step(c, st, &row);
	}
	return row;
}

static void commit_run_one(struct commit *c, struct commit_run *r)
{
	if (!r->row)
		r->row = commit_run_find(c, r);
	if (r->row)
		commit_run_update(c, r);
	else
		commit_run_insert(c, r);
	for (uint32_t i = 0; i < r->n_periods; i++) {
		sqlite3_stmt *st = commit_stmt(c, ST_RUN_PERIOD);

		if (!st)
			return;
		sqlite3_bind_int64(st, 1, r->row);
		sqlite3_bind_int64(st, 2, r->periods[i].from_ns);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)r->periods[i].period_ns);
		commit_step(c, st, NULL);
	}
	if (r->dropped)
		commit_loss(c, r->dropped_ts, r->row, "store", r->dropped);
}

/* Kernel stamps became UTC with this offset: on record at the start of a segment and whenever the clock was set. */
static int64_t commit_clock(struct commit *c)
{
	int64_t offset = clock_boot_offset_ns();
	int64_t moved = offset - c->boot_offset_ns;
	sqlite3_stmt *st;

	if (c->boot_offset_segment == c->seg->serial && moved < CLOCK_STEP_NS && moved > -CLOCK_STEP_NS)
		return c->boot_offset_ns;
	st = commit_stmt(c, ST_CLOCK);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, clock_utc_ns());
	sqlite3_bind_int64(st, 2, offset);
	commit_step(c, st, NULL);
	return offset;
}

/* --- the transaction --- */

static void commit_contents(struct commit *c, const struct batch *b, const struct commit_run *runs,
			    const struct dict_dirty *frames, const struct dict_dirty *processes)
{
	for (uint32_t i = 0; i < processes->n; i++)
		commit_learnt_process(c, processes->items[i]);
	for (uint32_t i = 0; i < frames->n; i++)
		commit_learnt_frame(c, frames->items[i]);
	commit_rows(c, b, runs);
	for (uint32_t i = 0; i < b->n_losses; i++)
		commit_loss(c, b->losses[i].ts, runs[b->losses[i].run - 1].row, b->losses[i].reason, b->losses[i].n);
	for (uint32_t i = 0; i < b->n_costs; i++)
		commit_cost(c, &b->costs[i], runs[b->costs[i].run - 1].row);
	for (uint32_t i = 0; i < b->n_unwound; i++)
		commit_unwound(c, &b->unwound[i], runs[b->unwound[i].run - 1].row);
}

static void commit_undo_all(struct commit *c)
{
	for (uint32_t i = 0; i < c->n_undo; i++) {
		if (c->undo[i].kind == DICT_KINDS)
			dict_at(c->dict, DICT_NODE, dict_node, c->undo[i].index)->own = 0;
		else
			*(uint32_t *)pool_at(&c->dict->pool[c->undo[i].kind], c->undo[i].index) = 0;
	}
	commit_args_forget(c); /* their texts may be gone */
	if (!sqlite3_get_autocommit(c->seg->db))
		sqlite3_exec(c->seg->db, "ROLLBACK", NULL, NULL, NULL);
}

/* The batch's dictionary with what it has learnt: taken before, given back if the transaction fails. */
static void commit_in_dict(struct commit *c, const struct batch *b, struct commit_run *runs)
{
	struct dict_dirty frames = dirty_take(c->dict, &c->dict->dirty_frames, DICT_FRAME);
	struct dict_dirty processes = dirty_take(c->dict, &c->dict->dirty_processes, DICT_PROCESS);

	commit_contents(c, b, runs, &frames, &processes);
	commit_exec(c, ST_COMMIT);
	if (c->rc != SQLITE_OK) {
		dirty_put_back(c->dict, &c->dict->dirty_frames, &frames);
		dirty_put_back(c->dict, &c->dict->dirty_processes, &processes);
	}
	free(frames.items);
	free(processes.items);
}

int commit_batch(struct commit *c, struct segment *seg, const struct batch *b, struct commit_run *runs, uint32_t n_runs)
{
	struct commit_run *work = mem_array(n_runs + 1, sizeof(*work));
	int64_t offset;
	int code;

	c->seg = seg;
	c->dict = b ? b->dict : NULL;
	c->rc = SQLITE_OK;
	c->n_undo = 0;
	if (c->dict && c->dict->segment != seg->serial)
		dict_forget_rows(c->dict, seg->serial);
	memcpy(work, runs, n_runs * sizeof(*work));
	commit_exec(c, ST_BEGIN);
	offset = commit_clock(c);
	for (uint32_t i = 0; i < n_runs; i++)
		commit_run_one(c, &work[i]);
	if (c->dict)
		commit_in_dict(c, b, work);
	else
		commit_exec(c, ST_COMMIT);
	code = segment_errno(seg->db, c->rc);
	if (code) {
		commit_undo_all(c);
	} else {
		memcpy(runs, work, n_runs * sizeof(*work));
		c->boot_offset_ns = offset;
		c->boot_offset_segment = seg->serial;
	}
	free(work);
	return code;
}

void commit_release(struct commit *c)
{
	c->seg = NULL; /* gone by now */
	commit_args_forget(c);
	free(c->undo);
	free(c->chain);
	strbuf_release(&c->tail);
	free(c->order);
	*c = (struct commit){0};
}
