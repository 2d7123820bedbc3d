/* SPDX-License-Identifier: Apache-2.0 */
/* procs: see the header. */
#include "tools/procs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define HOST "[host]"

static const char *container_of(const struct fold_process *p)
{
	return *p->container ? p->container : *p->container_id ? p->container_id : HOST;
}

/* Containers are few: a host with a thousand of them is looked through a thousand times for each process at worst. */
static size_t container_row(struct procs *p, size_t *cap, const char *name)
{
	size_t i = 0;

	while (i < p->n && strcmp(p->rows[i].container, name))
		i++;
	if (i == p->n) {
		mem_grow(p->rows, p->n, *cap);
		p->rows[p->n++] = (struct procs_row){.container = name};
	}
	return i;
}

/* Of two that used as much, the one that is older, whatever their places are in the store. */
static bool used_more(const struct fold_process *a, const struct fold_process *b)
{
	if (a->ns != b->ns)
		return a->ns > b->ns;
	return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->pid < b->pid;
}

static void row_add(struct procs_row *r, const struct fold *f, uint32_t process)
{
	const struct fold_process *p = &f->processes[process];

	if (!r->n_processes || used_more(p, r->who))
		r->who = p;
	r->n_processes++;
	r->ns += p->ns;
	r->samples += p->samples;
}

/* Which row each process is in; UINT32_MAX: in none, it did not run. */
static uint32_t *gather(struct procs *p, const struct fold *f, enum procs_by by)
{
	uint32_t *row_of = mem_array(f->n_processes, sizeof(*row_of));
	size_t cap = 0;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		size_t row = p->n;

		row_of[i] = UINT32_MAX;
		if (!f->processes[i].samples)
			continue;
		if (by == PROCS_BY_CONTAINER) {
			row = container_row(p, &cap, container_of(&f->processes[i]));
		} else {
			mem_grow(p->rows, p->n, cap);
			p->rows[p->n++] = (struct procs_row){0};
		}
		row_add(&p->rows[row], f, i);
		row_of[i] = (uint32_t)row;
	}
	return row_of;
}

struct spent {             /* leaves, brought into order of row and function */
	uint32_t row, frame;
	uint64_t ns;
};

static bool same_function(const struct fold *f, uint32_t a, uint32_t b)
{
	return !strcmp(f->frames[a].name, f->frames[b].name) && !strcmp(f->frames[a].module, f->frames[b].module);
}

static int by_row_and_function(const void *a, const void *b, void *ctx)
{
	const struct spent *x = a, *y = b;
	const struct fold *f = ctx;
	int c;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	c = strcmp(f->frames[x->frame].name, f->frames[y->frame].name);
	return c ? c : strcmp(f->frames[x->frame].module, f->frames[y->frame].module);
}

static void best_functions(struct procs *p, const struct fold *f, const uint32_t *row_of)
{
	cleanup_free struct spent *list = mem_array(f->n_leaves, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *l = &f->leaves[i];

		if (l->node && row_of[l->process] != UINT32_MAX)
			list[n++] = (struct spent){row_of[l->process], f->nodes[l->node].frame, l->ns};
	}
	if (n)
		qsort_r(list, n, sizeof(*list), by_row_and_function, (void *)(uintptr_t)f);
	for (size_t i = 0, k; i < n; i = k) {
		struct procs_row *r = &p->rows[list[i].row];
		uint64_t ns = 0;

		for (k = i; k < n && list[k].row == list[i].row && same_function(f, list[k].frame, list[i].frame); k++)
			ns += list[k].ns;
		if (ns > r->frame_ns) {
			r->frame_ns = ns;
			r->frame = list[i].frame;
		}
	}
}

void procs_init(struct procs *p, const struct fold *f, enum procs_by by)
{
	cleanup_free uint32_t *row_of = NULL;
	struct err e = {0};

	*p = (struct procs){0};
	row_of = gather(p, f, by);
	best_functions(p, f, row_of);
	procs_sort(p, "cpu", &e);
}

void procs_release(struct procs *p)
{
	free(p->rows);
	*p = (struct procs){0};
}

const struct fold_process *procs_parent(const struct fold *f, const struct fold_process *p)
{
	const struct fold_process *best = NULL;

	for (size_t i = 0; i < f->n_processes; i++) {
		const struct fold_process *x = &f->processes[i];

		if (x->pid == p->ppid && x != p && x->start_ns <= p->start_ns && (!best || x->start_ns > best->start_ns))
			best = x;
	}
	return best;
}

/* --- order --- */

static int by_pid(const struct procs_row *x, const struct procs_row *y)
{
	return (x->who->pid > y->who->pid) - (x->who->pid < y->who->pid);
}

static int by_cpu(const struct procs_row *x, const struct procs_row *y)
{
	return (x->ns < y->ns) - (x->ns > y->ns);
}

static int by_name(const struct procs_row *x, const struct procs_row *y)
{
	if (x->container)
		return strcmp(x->container, y->container);
	return strcmp(x->who->comm, y->who->comm);
}

static int by_start(const struct procs_row *x, const struct procs_row *y)
{
	return (x->who->start_ns > y->who->start_ns) - (x->who->start_ns < y->who->start_ns);
}

static const struct order {
	const char *key;
	int (*cmp)(const struct procs_row *x, const struct procs_row *y);
} ORDERS[] = {{"cpu", by_cpu}, {"pid", by_pid}, {"name", by_name}, {"start", by_start}};

struct sorting {
	const struct order *order; /* NULL: by the amount */
	size_t amount;             /* which of `more` */
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct procs_row *x = a, *y = b;
	const struct sorting *s = ctx;
	int c = s->order ? s->order->cmp(x, y) : (x->more[s->amount] < y->more[s->amount]) - (x->more[s->amount] > y->more[s->amount]);

	if (!c)
		c = by_cpu(x, y);
	return c ? c : by_pid(x, y);
}

/* --- beside CPU time --- */

static bool same_process(const struct fold_process *x, const struct fold_process *y)
{
	return x->pid == y->pid && x->start_ns == y->start_ns && !strcmp(x->comm, y->comm) && !strcmp(x->exe, y->exe) &&
	       !strcmp(x->container_id, y->container_id);
}

static struct procs_row *row_of(const struct procs *p, const struct fold_process *who)
{
	for (size_t i = 0; i < p->n; i++)
		if (same_process(p->rows[i].who, who))
			return &p->rows[i];
	return NULL;
}

void procs_add(struct procs *p, const struct procs_more *more)
{
	p->more = more;
	for (size_t k = 0; k < more->n; k++)
		for (size_t i = 0; i < more->fold[k]->n_processes; i++) {
			const struct fold_process *who = &more->fold[k]->processes[i];
			struct procs_row *row = who->ns ? row_of(p, who) : NULL;

			if (row)
				row->more[k] += who->ns;
		}
}

/* Rows of those who have some of it, and used no CPU. */
static void bring(struct procs *p, size_t k)
{
	const struct fold *f = p->more->fold[k];
	size_t cap = p->n;

	for (size_t i = 0; i < f->n_processes; i++) {
		if (!f->processes[i].ns || row_of(p, &f->processes[i]))
			continue;
		mem_grow(p->rows, p->n, cap);
		p->rows[p->n++] = (struct procs_row){.who = &f->processes[i], .n_processes = 1};
	}
	for (size_t other = 0; other < p->more->n; other++)
		for (size_t i = 0; i < p->n; i++)
			p->rows[i].more[other] = 0;
	procs_add(p, p->more);
}

static int sort_by_kind(struct procs *p, const char *key, struct err *e)
{
	const struct store_kind_info *kind = store_kind_named(key);
	size_t k = p->more ? procs_more_named(p->more, key) : 0;

	if (!kind || !procs_more_takes(kind)) {
		struct strbuf names cleanup_strbuf = STRBUF_INIT;

		procs_more_names(&names);
		return err_set(e, -EINVAL, EXIT_USAGE, "--sort %.40s: there is cpu, pid, name and start, and of what was recorded %s", key,
			       strbuf_str(&names));
	}
	if (!p->more || k == p->more->n) {
		err_set(e, -ENODATA, EXIT_NOTHING, "--sort %s: no %s was recorded in that range", kind->name, kind->what);
		err_fix(e, "sonde status    says what was recorded, and when");
		return -ENODATA;
	}
	bring(p, k);
	if (p->n)
		qsort_r(p->rows, p->n, sizeof(*p->rows), compare, &(struct sorting){.amount = k});
	return 0;
}

int procs_sort(struct procs *p, const char *key, struct err *e)
{
	for (size_t i = 0; i < sizeof(ORDERS) / sizeof(*ORDERS); i++)
		if (!strcmp(ORDERS[i].key, key)) {
			if (p->n)
				qsort_r(p->rows, p->n, sizeof(*p->rows), compare, &(struct sorting){.order = &ORDERS[i]});
			return 0;
		}
	return sort_by_kind(p, key, e);
}
