/* SPDX-License-Identifier: Apache-2.0 */
/* commit_process: processes on their way into a segment, with command lines told by what differs from another one. */
#include "schema/store/write/transaction.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/model/argshare.h"

void commit_args_forget(struct commit *c)
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

/* The base of a command line, 0: it has none. What differs from it is put into c->own. */
static uint32_t commit_args(struct commit *c, uint32_t exe, const char *args, struct argshare *share)
{
	const char *stem = NULL;
	size_t len = argshare_stem(args, &stem);
	struct commit_args *base;

	strbuf_reset(&c->form);
	strbuf_reset(&c->own);
	if (len)
		argshare_form(args, stem, len, &c->form);
	base = *args ? commit_args_find(c, exe, len ? strbuf_str(&c->form) : args, share) : NULL;
	if (!base)
		return 0;
	if (len) {
		strbuf_addch(&c->own, ARGSHARE_MARK);
		strbuf_add(&c->own, stem, len);
		strbuf_addch(&c->own, ARGSHARE_MARK);
	}
	strbuf_add(&c->own, share->middle, share->middle_bytes);
	return base->row;
}

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

/* What is known of it now. */
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

	if (!p || p->row)
		return p ? p->row : 0;
	now = commit_process_now(c, index);
	row = commit_shared(c, DICT_PROCESS, index, ST_PROCESS_FIND, ST_PROCESS, bind_process, &now, &found);
	if (found)
		commit_process_learn(c, row, &now);
	return row;
}

void commit_end(struct commit *c, const struct batch_end *x, int64_t run)
{
	uint32_t comm = commit_text(c, x->comm), container = commit_container(c, x->container);
	sqlite3_stmt *st = commit_stmt(c, ST_END);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, comm);
	sqlite3_bind_int64(st, 4, container);
	sqlite3_bind_int64(st, 5, x->how);
	sqlite3_bind_int64(st, 6, x->status);
	sqlite3_bind_int64(st, 7, (sqlite3_int64)x->n);
	commit_step(c, st, NULL);
}

void commit_learnt_process(struct commit *c, uint32_t index)
{
	struct commit_process now;
	uint32_t row = dict_at(c->dict, DICT_PROCESS, dict_process, index)->row;

	if (!row)
		return; /* what is known now is written at first use */
	now = commit_process_now(c, index);
	commit_process_learn(c, row, &now);
}
