/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/write/commit/commit_dict.h"

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/commit/commit_args.h"

uint32_t commit_text(struct commit *c, uint32_t index)
{
	struct dict_text *t = index ? dict_at(c->dict, DICT_TEXT, dict_text, index) : NULL;
	sqlite3_stmt *st;
	uint32_t row;

	row = commit_row(c, DICT_TEXT, index);
	if (!t || row)
		return row;
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
	bind_str(st, 7, x->project);
	bind_str(st, 8, x->service);
	bind_str(st, 9, x->labels);
	bind_str(st, 10, x->started);
	sqlite3_bind_int64(st, 11, x->restarts);
}

/* The one that is in the segment without a name, or with one. */
static uint32_t container_same(struct commit *c, const struct dict_container *x, bool unnamed)
{
	sqlite3_stmt *st = commit_stmt(c, ST_CONTAINER_SAME);
	uint32_t row = 0;

	if (!st)
		return 0;
	bind_hash(st, hash_str(hash_str(HASH_SEED, x->runtime_id), x->cgroup));
	bind_str(st, 2, x->runtime_id);
	bind_str(st, 3, x->cgroup);
	sqlite3_bind_int(st, 4, unnamed);
	commit_step(c, st, &row);
	return row;
}

/* A container is often met before its runtime has written down its name: the name is then of that
 * row, and who meets it without one later means the one that has it. */
uint32_t commit_container(struct commit *c, uint32_t index)
{
	struct dict_container *x =
		index ? dict_at(c->dict, DICT_CONTAINER, dict_container, index) : NULL;
	sqlite3_stmt *name;
	uint32_t row;
	bool found;

	row = commit_row(c, DICT_CONTAINER, index);
	if (!x || row)
		return row;
	row = container_same(c, x, *x->name);
	if (!row)
		return commit_shared(c, DICT_CONTAINER, index, ST_CONTAINER_FIND, ST_CONTAINER,
				     bind_container, x, &found);
	name = *x->name ? commit_stmt(c, ST_CONTAINER_NAME) : NULL;
	if (name) {
		bind_container(c, name, x);
		sqlite3_bind_int64(name, 12, row);
		commit_step(c, name, NULL);
	}
	commit_mark(c, DICT_CONTAINER, index, row);
	return row;
}

static const char *build_id_of(struct commit *c, const struct dict_image *i)
{
	const char *id;

	pthread_mutex_lock(&c->dict->lock);
	id = i->learnt ? i->learnt : i->build_id;
	pthread_mutex_unlock(&c->dict->lock);
	return id;
}

static void bind_image(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct dict_image *i = entry;
	const char *build_id = build_id_of(c, i);

	bind_hash(st, hash_str(hash_str(HASH_SEED, i->path), build_id));
	sqlite3_bind_int64(st, 2, i->kind);
	bind_str(st, 3, i->path);
	bind_str(st, 4, i->name);
	bind_str(st, 5, build_id);
	bind_str(st, 6, i->key);
}

uint32_t commit_image(struct commit *c, uint32_t index)
{
	struct dict_image *i = index ? dict_at(c->dict, DICT_IMAGE, dict_image, index) : NULL;
	uint32_t row = commit_row(c, DICT_IMAGE, index);
	bool found;

	if (!i || row)
		return row;
	return commit_shared(c, DICT_IMAGE, index, ST_IMAGE_FIND, ST_IMAGE, bind_image, i, &found);
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
	uint32_t row = commit_row(c, DICT_SOURCE, index);
	bool found;

	if (!s || row)
		return row;
	return commit_shared(c, DICT_SOURCE, index, ST_SOURCE_FIND, ST_SOURCE, bind_source, s,
			     &found);
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
	struct dict_function *f =
		index ? dict_at(c->dict, DICT_FUNCTION, dict_function, index) : NULL;
	uint32_t row = commit_row(c, DICT_FUNCTION, index);
	bool found;

	if (!f || row)
		return row;
	return commit_shared(c, DICT_FUNCTION, index, ST_FUNCTION_FIND, ST_FUNCTION, bind_function,
			     f, &found);
}

/* The functions at the frame, as far as known now: ids of the segment. */
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
	p.outer =
		commit_frame(c, p.outer); /* interned before it: as deep as functions are inlined */
	return p;
}

uint32_t commit_frame(struct commit *c, uint32_t index)
{
	struct dict_frame *f = index ? dict_at(c->dict, DICT_FRAME, dict_frame, index) : NULL;
	struct commit_place p;
	uint32_t image, row;
	sqlite3_stmt *st;

	row = commit_row(c, DICT_FRAME, index);
	if (!f || row)
		return row;
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

/* --- processes --- */

/* A process as it is written: ids are those of the segment. */
struct commit_process {
	struct dict_process p;
	uint32_t args_base;
	struct argshare args; /* and c->own */
};

static void bind_process(struct commit *c, sqlite3_stmt *st, const void *entry)
{
	const struct commit_process *x = entry;
	const struct dict_process *p = &x->p;

	sqlite3_bind_int64(st, 2, p->pid);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)p->start_ticks);
	sqlite3_bind_int64(st, 4, p->exec_id);
	if (sqlite3_bind_parameter_count(st) == 4)
		return;
	sqlite3_bind_int64(st, 5, p->ppid);
	bind_str(st, 6, p->comm);
	sqlite3_bind_int64(st, 7, p->exe);
	bind_str(st, 8, strbuf_str(&c->own));
	sqlite3_bind_int64(st, 9, p->cgroup);
	sqlite3_bind_int64(st, 10, p->unit);
	sqlite3_bind_int64(st, 11, p->container);
	sqlite3_bind_int64(st, 12, p->self);
	sqlite3_bind_int64(st, 13, p->uid);
	sqlite3_bind_int64(st, 14, p->start_ns);
	sqlite3_bind_int64(st, 15, x->args_base);
	sqlite3_bind_int64(st, 16, (sqlite3_int64)x->args.keep);
	sqlite3_bind_int64(st, 17, (sqlite3_int64)x->args.end);
	sqlite3_bind_int64(st, 18, p->end_ns);
	sqlite3_bind_int64(st, 19, p->how);
	sqlite3_bind_int64(st, 20, p->status);
	sqlite3_bind_int64(st, 21, p->lang);
	sqlite3_bind_int64(st, 22, p->runtime);
	sqlite3_bind_int64(st, 23, p->linking);
	sqlite3_bind_int64(st, 24, p->libc);
}

/* The current values. */
static struct commit_process commit_process_now(struct commit *c, uint32_t index)
{
	struct dict_process *p = dict_at(c->dict, DICT_PROCESS, dict_process, index);
	struct commit_process now = {0};

	pthread_mutex_lock(&c->dict->lock);
	now.p = *p;
	pthread_mutex_unlock(&c->dict->lock);
	now.p.exe = commit_text(c, now.p.exe);
	now.p.cgroup = commit_text(c, now.p.cgroup);
	now.p.unit = commit_text(c, now.p.unit);
	now.p.lang = commit_text(c, now.p.lang);
	now.p.runtime = commit_text(c, now.p.runtime);
	now.p.container = commit_container(c, now.p.container);
	now.args_base = commit_args(c, now.p.exe, now.p.args, &now.args);
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

uint32_t commit_process(struct commit *c, uint32_t index)
{
	struct dict_process *p = index ? dict_at(c->dict, DICT_PROCESS, dict_process, index) : NULL;
	struct commit_process now;
	bool found = false;
	uint32_t row;

	row = commit_row(c, DICT_PROCESS, index);
	if (!p || row)
		return row;
	now = commit_process_now(c, index);
	row = commit_shared(c, DICT_PROCESS, index, ST_PROCESS_FIND, ST_PROCESS, bind_process, &now,
			    &found);
	if (found)
		commit_process_learn(c, row, &now);
	return row;
}

/* --- stacks: what they add to an earlier one (read/stacktree.h has the form) --- */

static struct dict_node *node_at(const struct commit *c, uint32_t node)
{
	return dict_at(c->dict, DICT_NODE, dict_node, node);
}

/* The leaf and its ancestors up to one that is in the segment, leaf first. Returns that ancestor,
 * or 0. */
static uint32_t chain_of(struct commit *c, uint32_t leaf, uint32_t *n)
{
	uint32_t node = leaf;

	*n = 0;
	do {
		mem_grow(c->chain, *n, c->cap_chain);
		c->chain[(*n)++] = node;
		node = node_at(c, node)->parent;
	} while (node && !commit_row(c, DICT_NODE, node));
	return node;
}

static uint32_t depth_of(const struct commit *c, uint32_t node)
{
	uint32_t depth = 0;

	for (; node; node = node_at(c, node)->parent)
		depth++;
	return depth;
}

/* Frames between base and leaf, as text; then the leaf's id. */
static uint32_t write_frames(struct commit *c, uint32_t n)
{
	strbuf_reset(&c->tail);
	while (--n) {
		if (c->tail.len)
			strbuf_addch(&c->tail, ',');
		strbuf_addu(&c->tail, commit_frame(c, node_at(c, c->chain[n])->frame));
		if (c->rc)
			return 0;
	}
	return commit_frame(c, node_at(c, c->chain[0])->frame);
}

uint32_t commit_stack(struct commit *c, uint32_t leaf)
{
	uint32_t n, base, frame, row;
	sqlite3_stmt *st;

	row = leaf ? commit_own(c, leaf) : 0;
	if (!leaf || row)
		return row;
	base = chain_of(c, leaf, &n);
	frame = write_frames(c, n);
	st = commit_stmt(c, ST_STACK);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, commit_row(c, DICT_NODE, base));
	sqlite3_bind_int64(st, 2, depth_of(c, base));
	sqlite3_bind_int64(st, 3, frame);
	sqlite3_bind_text(st, 4, strbuf_str(&c->tail), -1, SQLITE_STATIC);
	row = commit_insert(c, st);
	if (!row)
		return 0;
	while (n--)
		if (!commit_row(c, DICT_NODE, c->chain[n]))
			commit_mark(c, DICT_NODE, c->chain[n], row);
	commit_mark_stack(c, leaf, row);
	return row;
}

static void label_task(struct commit *c, uint32_t row, const char *labels)
{
	sqlite3_stmt *st = commit_stmt(c, ST_TASK_LABEL);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, row);
	bind_str(st, 2, labels);
	commit_step(c, st, NULL);
}

uint32_t commit_task(struct commit *c, uint32_t index, const struct commit_run *runs)
{
	struct dict_task *t = index ? dict_at(c->dict, DICT_TASK, dict_task, index) : NULL;
	uint32_t process, row;
	sqlite3_stmt *st;

	row = commit_row(c, DICT_TASK, index);
	if (!t || row)
		return row;
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
	if (row && *t->labels)
		label_task(c, row, t->labels);
	if (row)
		commit_mark(c, DICT_TASK, index, row);
	return row;
}

uint32_t commit_series(struct commit *c, uint32_t index, const struct commit_run *runs)
{
	struct dict_series *s = dict_at(c->dict, DICT_SERIES, dict_series, index);
	uint32_t task, stack, row = commit_row(c, DICT_SERIES, index);
	sqlite3_stmt *st;

	if (row)
		return row;
	task = commit_task(c, s->task, runs);
	stack = commit_stack(c, s->stack);
	st = commit_stmt(c, ST_SERIES);
	if (!st)
		return 0;
	sqlite3_bind_int64(st, 1, task);
	sqlite3_bind_int64(st, 2, stack);
	sqlite3_bind_int64(st, 3, s->label);
	row = commit_insert(c, st);
	if (row)
		commit_mark(c, DICT_SERIES, index, row);
	return row;
}

/* --- what was learnt later --- */

void commit_learnt_image(struct commit *c, uint32_t index)
{
	const struct dict_image *i = dict_at(c->dict, DICT_IMAGE, dict_image, index);
	uint32_t row = commit_row(c, DICT_IMAGE, index);
	sqlite3_stmt *st = row ? commit_stmt(c, ST_IMAGE_LEARN) : NULL;

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, row);
	bind_str(st, 2, build_id_of(c, i));
	sqlite3_bind_int64(
		st, 3,
		(sqlite3_int64)(hash_str(hash_str(HASH_SEED, i->path), build_id_of(c, i)) &
				0x7fffffff));
	commit_step(c, st, NULL);
}

void commit_learnt_frame(struct commit *c, uint32_t index)
{
	uint32_t row = commit_row(c, DICT_FRAME, index);
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

void commit_learnt_process(struct commit *c, uint32_t index)
{
	struct commit_process now;
	uint32_t row = commit_row(c, DICT_PROCESS, index);

	if (!row)
		return; /* current values are written at first use */
	now = commit_process_now(c, index);
	commit_process_learn(c, row, &now);
}
