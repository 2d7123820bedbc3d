/* SPDX-License-Identifier: Apache-2.0 */
/* waitpairs: see the header. */
#include "tools/waitpairs.h"
#include "tools/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/idmap.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/waitread.h"
#include "tools/select.h"
#include "tools/waitstack.h"

struct summing {
	const struct selection *sel;
	struct waitpairs *out;
	struct idmap found;          /* hash of a row's key -> 1 + its place */
	struct idmap stacks;         /* hash of a row's key and a path -> 1 + place among the row's */
	struct store_segment *seg;
	const struct store_dict *dict;
};

static struct waitpairs_end end_of(const struct summing *s, const struct store_thread *t)
{
	const struct store_process_row *p = t->process ? &s->dict->processes[t->process] : NULL;

	if (!p || !p->present)
		return (struct waitpairs_end){.container = mem_strdup(""), .comm = mem_strdup("")};
	return (struct waitpairs_end){.container = mem_strdup(*p->container ? p->container : p->container_id),
				      .comm = mem_strdup(p->comm), .pid = p->pid};
}

static uint64_t hash_end(uint64_t h, const struct summing *s, const struct store_thread *t)
{
	const struct store_process_row *p = t->process ? &s->dict->processes[t->process] : NULL;

	if (!p || !p->present)
		return hash_u64(h, 0);
	h = hash_u64(hash_u64(hash_u64(h, p->pid), (uint64_t)p->start_ns), p->exec_id);
	return hash_bytes(h, p->comm, strlen(p->comm) + 1);
}

static void add_stack(struct summing *s, struct waitpairs_row *r, uint64_t h, const struct store_wait_by *b)
{
	char *path = waitstack_path(s->dict, b->stack);
	const char *own = waitstack_own(s->dict, b->stack);
	uint64_t place = 0;

	h = hash_bytes(h, path, strlen(path) + 1);
	if (idmap_get(&s->stacks, h, &place)) {
		free(path);
	} else {
		mem_grow(r->stacks, r->n_stacks, r->cap_stacks);
		r->stacks[r->n_stacks++] = (struct waitpairs_stack){.path = path, .function = mem_strdup(own ? own : "")};
		place = r->n_stacks;
		idmap_set(&s->stacks, h, place);
	}
	r->stacks[place - 1].n += b->n;
	r->stacks[place - 1].total_ns += b->total_ns;
}

static int add(void *ctx, const struct store_wait_by *b)
{
	struct summing *s = ctx;
	uint64_t h = hash_end(hash_end(HASH_SEED, s, &b->who), s, &b->by), place = 0;
	struct waitpairs_row *r;

	h = hash_bytes(hash_u64(h, b->kind), b->reason, strlen(b->reason) + 1);
	if (!idmap_get(&s->found, h, &place)) {
		mem_grow(s->out->rows, s->out->n, s->out->cap);
		s->out->rows[s->out->n++] = (struct waitpairs_row){.who = end_of(s, &b->who), .by = end_of(s, &b->by),
								   .kind = b->kind, .reason = mem_strdup(b->reason)};
		place = s->out->n;
		idmap_set(&s->found, h, place);
	}
	r = &s->out->rows[place - 1];
	r->n += b->n;
	r->total_ns += b->total_ns;
	if (b->stack)
		add_stack(s, r, h, b);
	return 0;
}

static int add_held(void *ctx, const struct store_held *h)
{
	struct waitpairs *w = ((struct summing *)ctx)->out;
	size_t i = 0;

	w->steal_ns += h->steal_ns;
	w->cpu_ns += h->cpu_ns;
	if (!*h->cgroup)
		return 0;
	while (i < w->n_held && strcmp(w->held[i].cgroup, h->cgroup))
		i++;
	if (i == w->n_held) {
		mem_grow(w->held, w->n_held, w->cap_held);
		w->held[w->n_held++] = (struct waitpairs_held){.cgroup = mem_strdup(h->cgroup)};
	}
	w->held[i].periods += h->periods;
	w->held[i].throttled += h->throttled;
	w->held[i].throttled_ns += h->throttled_ns;
	return 0;
}

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct summing *s = ctx;

	(void)thread;
	return select_wants(s->sel, p, tid) && (s->sel->self || !p->self);
}

static int sum_segment(struct summing *s, const char *path, enum waitpairs_what what, struct err *e)
{
	int64_t run = select_run_in(s->sel, path, 0);
	int rc = run < 0 ? 0 : store_segment_open(path, &s->seg, e);

	if (run < 0 || rc)
		return rc;
	rc = store_segment_dict(s->seg, &s->dict, e);
	for (size_t i = 1; !rc && run >= 0; i++) {
		struct store_query q = {.from_ns = s->sel->from_ns, .to_ns = s->sel->to_ns, .run = run, .want = wanted, .ctx = s};

		rc = what == WAITPAIRS_WAKERS ? store_wakers(s->seg, &q, add, s, e) : store_culprits(s->seg, &q, add, s, e);
		if (!rc && what == WAITPAIRS_NEIGHBOURS)
			rc = store_held_back(s->seg, &q, add_held, s, e);
		run = select_run_in(s->sel, path, i);
	}
	store_segment_close(s->seg);
	return rc;
}

/* --- order --- */

static int compare_who(const struct waitpairs_row *x, const struct waitpairs_row *y)
{
	int c = strcmp(x->reason, y->reason);

	if (x->who.pid != y->who.pid)
		return x->who.pid < y->who.pid ? -1 : 1;
	return c ? c : strcmp(x->who.comm, y->who.comm);
}

static int by_who(const void *a, const void *b)
{
	return compare_who(a, b);
}

static int by_time(const void *a, const void *b)
{
	const struct waitpairs_row *x = a, *y = b;
	int c;

	if (x->whole_ns != y->whole_ns)
		return x->whole_ns > y->whole_ns ? -1 : 1;
	c = compare_who(x, y);
	if (c)
		return c;
	return x->total_ns > y->total_ns ? -1 : x->total_ns < y->total_ns;
}

static int held_by_time(const void *a, const void *b)
{
	const struct waitpairs_held *x = a, *y = b;

	return x->throttled_ns > y->throttled_ns ? -1 : x->throttled_ns < y->throttled_ns;
}

static int stack_by_time(const void *a, const void *b)
{
	const struct waitpairs_stack *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

static void order(struct waitpairs *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->rows[i].n_stacks)
			qsort(w->rows[i].stacks, w->rows[i].n_stacks, sizeof(*w->rows[i].stacks), stack_by_time);
	if (w->n_held)
		qsort(w->held, w->n_held, sizeof(*w->held), held_by_time);
	if (!w->n)
		return;
	qsort(w->rows, w->n, sizeof(*w->rows), by_who);
	for (size_t i = 0, k; i < w->n; i = k) {
		uint64_t whole = 0;

		for (k = i; k < w->n && !compare_who(&w->rows[i], &w->rows[k]); k++)
			whole += w->rows[k].total_ns;
		for (size_t m = i; m < k; m++)
			w->rows[m].whole_ns = whole;
	}
	qsort(w->rows, w->n, sizeof(*w->rows), by_time);
}

int waitpairs_make(const struct selection *sel, enum waitpairs_what what, struct waitpairs **out, struct err *e)
{
	struct waitpairs *w = mem_alloc(sizeof(*w));
	struct summing s = {.sel = sel, .out = w};
	int rc = 0;

	reading_begin(sel->n_segments);
	for (size_t i = 0; i < sel->n_segments && !rc; i++) {
		reading_file(i);
		rc = sum_segment(&s, sel->segments[i].path, what, e);
	}
	reading_end();
	idmap_release(&s.found);
	idmap_release(&s.stacks);
	order(w);
	if (!rc && !w->n) {
		rc = err_set(e, -ENOENT, EXIT_NOTHING, "nobody %s in %s%s%s",
			     what == WAITPAIRS_WAKERS ? "was woken" : "waited for a CPU", sel->range, *sel->what ? " of " : "",
			     sel->what);
		err_fix(e, "sudo sonde record --families cpu,offcpu -d 10s");
	}
	if (rc) {
		waitpairs_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

static void end_free(struct waitpairs_end *x)
{
	free(x->container);
	free(x->comm);
}

void waitpairs_free(struct waitpairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		end_free(&p->rows[i].who);
		end_free(&p->rows[i].by);
		free(p->rows[i].reason);
		for (size_t k = 0; k < p->rows[i].n_stacks; k++) {
			free(p->rows[i].stacks[k].path);
			free(p->rows[i].stacks[k].function);
		}
		free(p->rows[i].stacks);
	}
	for (size_t i = 0; i < p->n_held; i++)
		free(p->held[i].cgroup);
	free(p->rows);
	free(p->held);
	free(p);
}
