/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitpairs.h"
#include "tools/print/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/days.h"
#include "schema/store/read/waits.h"
#include "tools/select/select.h"
#include "tools/waits/waitstack.h"
#include "tools/waits/waitsum.h"

#define ESTIMATED_S 10 /* buckets so long */

struct summing {
	const struct selection *sel;
	struct waitpairs *out;
	struct idmap found;  /* hash of a row's key -> 1 + its place */
	struct idmap stacks; /* hash of a row's key and a path -> 1 + place among the row's */
	struct store_segment *seg;
	const struct store_dict *dict;
};

static struct waitpairs_end end_of(const struct summing *s, const struct store_thread *t)
{
	const struct store_process_row *p = t->process ? &s->dict->processes[t->process] : NULL;

	if (!p || !p->present)
		return (struct waitpairs_end){.container = mem_strdup(""), .comm = mem_strdup("")};
	return (struct waitpairs_end){
		.container = mem_strdup(*p->container ? p->container : p->container_id),
		.comm = mem_strdup(p->comm),
		.pid = p->pid,
		.n_processes = 1};
}

static uint64_t hash_end(uint64_t h, const struct summing *s, const struct store_thread *t)
{
	const struct store_process_row *p = t->process ? &s->dict->processes[t->process] : NULL;

	if (!p || !p->present)
		return hash_u64(h, 0);
	h = hash_u64(hash_u64(hash_u64(h, p->pid), (uint64_t)p->start_ns), p->exec_id);
	return hash_bytes(h, p->comm, strlen(p->comm) + 1);
}

/* `path` is taken. */
static void add_path(struct idmap *stacks, struct waitpairs_row *r, uint64_t h, char *path,
		     const char *function, uint64_t n, uint64_t total_ns)
{
	uint64_t place = 0;

	h = hash_bytes(h, path, strlen(path) + 1);
	if (idmap_get(stacks, h, &place)) {
		free(path);
	} else {
		mem_grow(r->stacks, r->n_stacks, r->cap_stacks);
		r->stacks[r->n_stacks++] =
			(struct waitpairs_stack){.path = path, .function = mem_strdup(function)};
		place = r->n_stacks;
		idmap_set(stacks, h, place);
	}
	r->stacks[place - 1].n += n;
	r->stacks[place - 1].total_ns += total_ns;
}

static void add_stack(struct summing *s, struct waitpairs_row *r, uint64_t h,
		      const struct store_wait_by *b)
{
	const char *own = waitstack_own(s->dict, b->stack);

	add_path(&s->stacks, r, h, waitstack_path(s->dict, b->stack), own ? own : "", b->n,
		 b->total_ns);
}

static int add(void *ctx, const struct store_wait_by *b)
{
	struct summing *s = ctx;
	uint64_t h = hash_end(hash_end(HASH_SEED, s, &b->who), s, &b->by), place = 0;
	struct waitpairs_row *r;

	h = hash_bytes(hash_u64(h, b->kind), b->reason, strlen(b->reason) + 1);
	if (!idmap_get(&s->found, h, &place)) {
		mem_grow(s->out->rows, s->out->n, s->out->cap);
		s->out->rows[s->out->n++] = (struct waitpairs_row){.who = end_of(s, &b->who),
								   .by = end_of(s, &b->by),
								   .kind = b->kind,
								   .reason = mem_strdup(b->reason)};
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

static bool wanted(void *ctx, const struct store_process_row *p, const char *thread, uint32_t tid)
{
	const struct summing *s = ctx;

	(void)thread;
	return select_wants(s->sel, p, tid) && (s->sel->self || !p->self);
}

/* Is something of the range of a run whose buckets are long? There who had the CPU is looked for at
 * moments (decision 0221). */
static bool is_estimated(const struct summing *s, int64_t run)
{
	for (size_t i = 1; i < s->dict->n_runs; i++) {
		const struct store_run_row *r = &s->dict->runs[i];

		if (r->present && r->bucket_s >= ESTIMATED_S && !strcmp(r->family, "offcpu") &&
		    (!run || run == (int64_t)i) && r->from_ns < s->sel->to_ns &&
		    (r->to_ns > s->sel->from_ns || !r->to_ns))
			return true;
	}
	return false;
}

static int sum_segment(struct summing *s, const char *path, enum waitpairs_what what, struct err *e)
{
	int64_t run = select_run_in(s->sel, path, 0);
	int rc = run < 0 ? 0 : select_segment(s->sel, path, &s->seg, e);

	if (run < 0 || rc)
		return rc;
	rc = store_segment_stacks(s->seg, &s->dict, e);
	for (size_t i = 1; !rc && run >= 0; i++) {
		struct store_query q = {.from_ns = s->sel->from_ns,
					.to_ns = s->sel->to_ns,
					.run = run,
					.want = wanted,
					.ctx = s};

		rc = what == WAITPAIRS_WAKERS ? store_wakers(s->seg, &q, add, s, e) :
						store_culprits(s->seg, &q, add, s, e);
		if (!rc && what == WAITPAIRS_NEIGHBOURS)
			rc = waitheld_read(&s->out->held, s->sel, s->seg, s->dict, &q, e);
		s->out->estimated |= what == WAITPAIRS_NEIGHBOURS && is_estimated(s, run);
		run = select_run_in(s->sel, path, i);
	}
	return rc;
}

/* A day's file, if it has sums of waits, else its archives. */
static int sum_part(struct summing *s, const struct store_part *part, enum waitpairs_what what,
		    struct err *e)
{
	struct store_segment *seg;
	int rc = part->day ? select_segment(s->sel, part->path, &seg, e) : 0;

	if (rc)
		return rc;
	if (!part->day || store_waits_summed(seg))
		return sum_segment(s, part->path, what, e);
	for (size_t i = part->first; !rc && i < part->first + part->n; i++)
		rc = sum_segment(s, s->sel->segments[i].path, what, e);
	return rc;
}

static int sum_all(struct summing *s, enum waitpairs_what what, struct err *e)
{
	const struct store_part *parts;
	const size_t n = select_parts(s->sel, &parts);
	int rc = 0;

	reading_begin(n);
	for (size_t i = 0; i < n && !rc; i++) {
		reading_file(i);
		rc = sum_part(s, &parts[i], what, e);
	}
	reading_end();
	return rc;
}

/* --- order --- */

static int compare_who(const struct waitpairs_row *x, const struct waitpairs_row *y)
{
	int c = strcmp(x->reason, y->reason);

	if (x->who.pid != y->who.pid)
		return x->who.pid < y->who.pid ? -1 : 1;
	c = c ? c : strcmp(x->who.comm, y->who.comm);
	return c ? c : strcmp(x->who.container, y->who.container);
}

static int by_who(const void *a, const void *b)
{
	return compare_who(a, b);
}

static int by_time(const void *a, const void *b)
{
	const struct waitpairs_row *x = a, *y = b;
	int c;

	if (x->late != y->late)
		return x->late ? 1 : -1;
	if (x->whole_ns != y->whole_ns)
		return x->whole_ns > y->whole_ns ? -1 : 1;
	c = compare_who(x, y);
	if (c)
		return c;
	return x->total_ns > y->total_ns ? -1 : x->total_ns < y->total_ns;
}

static int stack_by_time(const void *a, const void *b)
{
	const struct waitpairs_stack *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Of one who waited, for one reason. */
static bool is_late(const struct waitpairs_row *rows, size_t n)
{
	const char *reason = rows[0].reason;
	uint64_t thread_ns = 0;

	for (size_t i = 0; i < n; i++)
		thread_ns += *rows[i].by.comm ? rows[i].total_ns : 0;
	return *reason && (!strcmp(reason, store_wait_reason(STORE_WAIT_SLEEP)) ||
			   !strcmp(reason, store_wait_reason(STORE_WAIT_CHILD)) ||
			   thread_ns < rows[0].whole_ns / 2);
}

static void order(struct waitpairs *w, bool fold)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->rows[i].n_stacks)
			qsort(w->rows[i].stacks, w->rows[i].n_stacks, sizeof(*w->rows[i].stacks),
			      stack_by_time);
	if (!w->n)
		return;
	qsort(w->rows, w->n, sizeof(*w->rows), by_who);
	for (size_t i = 0, k; i < w->n; i = k) {
		uint64_t whole = 0;

		for (k = i; k < w->n && !compare_who(&w->rows[i], &w->rows[k]); k++)
			whole += w->rows[k].total_ns;
		for (size_t m = i; m < k; m++)
			w->rows[m].whole_ns = whole;
		for (size_t m = i, late = fold && is_late(&w->rows[i], k - i); m < k; m++)
			w->rows[m].late = late;
	}
	qsort(w->rows, w->n, sizeof(*w->rows), by_time);
}

int waitpairs_make(const struct selection *sel, enum waitpairs_what what, struct waitpairs **out,
		   struct err *e)
{
	struct waitpairs *w = mem_alloc(sizeof(*w));
	struct summing s = {.sel = sel, .out = w};
	int rc = sum_all(&s, what, e);

	idmap_release(&s.found);
	idmap_release(&s.stacks);
	order(w, false);
	waitheld_sort(&w->held);
	if (!rc && !w->n) {
		rc = err_set(e, -ENOENT, EXIT_NOTHING, "nothing %s in %s%s%s",
			     what == WAITPAIRS_WAKERS ? "was woken" : "waited for a CPU",
			     sel->range, *sel->what ? " of " : "", sel->what);
		err_fix(e, "sudo sonde record --families cpu,offcpu -d 10s");
	}
	if (rc) {
		waitpairs_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

/* --- by name --- */

struct folding {
	struct waitpairs *out;
	struct idmap found; /* hash of both names -> 1 + place of the row */
	struct idmap stacks;
	struct idmap seen, counts; /* processes that have been met; how many, by the names */
};

static uint64_t hash_name(uint64_t h, const struct waitpairs_end *x)
{
	h = hash_bytes(h, x->container, strlen(x->container) + 1);
	return hash_bytes(h, x->comm, strlen(x->comm) + 1);
}

/* By who waited (and why), or by the whole pair: `salt` tells the two apart. */
static void count_process(struct folding *f, uint64_t h, uint64_t salt,
			  const struct waitpairs_end *x)
{
	bool fresh;

	if (!x->pid && !*x->comm)
		return;
	h = hash_u64(h, salt);
	idmap_ref(&f->seen, hash_u64(h, x->pid), &fresh);
	if (fresh)
		(*idmap_ref(&f->counts, h, &fresh))++;
}

static size_t counted(const struct folding *f, uint64_t h, uint64_t salt)
{
	uint64_t n = 0;

	return idmap_get(&f->counts, hash_u64(h, salt), &n) ? (size_t)n : 0;
}

static struct waitpairs_end end_copy(const struct waitpairs_end *x)
{
	return (struct waitpairs_end){
		.container = mem_strdup(x->container), .comm = mem_strdup(x->comm), .pid = x->pid};
}

static uint64_t hash_who(const struct waitpairs_row *r)
{
	return hash_bytes(hash_name(HASH_SEED, &r->who), r->reason, strlen(r->reason) + 1);
}

static uint64_t hash_pair(const struct waitpairs_row *r)
{
	return hash_u64(hash_name(hash_who(r), &r->by),
			r->kind + (r->by.pid || *r->by.comm ? 100 : 0));
}

/* Over loopback who sends is on the CPU when the interrupt comes. */
static bool is_nobody(const struct waitpairs_row *r)
{
	return *r->reason && r->kind == STORE_WAKE_INTERRUPT &&
	       strcmp(r->reason, store_wait_reason(STORE_WAIT_NETWORK)) &&
	       strcmp(r->reason, store_wait_reason(STORE_WAIT_POLL));
}

static void fold_row(struct folding *f, const struct waitpairs_row *row)
{
	char none[] = "";
	struct waitpairs_row nobody = *row;
	const struct waitpairs_row *r = is_nobody(row) ? &nobody : row;
	struct waitpairs_row *to;
	uint64_t h, place = 0;

	nobody.by = (struct waitpairs_end){.container = none, .comm = none};
	count_process(f, hash_who(r), 1, &r->who);
	h = hash_pair(r);
	count_process(f, h, 2, &r->by);
	if (!idmap_get(&f->found, h, &place)) {
		mem_grow(f->out->rows, f->out->n, f->out->cap);
		f->out->rows[f->out->n++] = (struct waitpairs_row){.who = end_copy(&r->who),
								   .by = end_copy(&r->by),
								   .kind = r->kind,
								   .reason = mem_strdup(r->reason),
								   .idle = r->idle};
		place = f->out->n;
		idmap_set(&f->found, h, place);
	}
	to = &f->out->rows[place - 1];
	to->n += r->n;
	to->total_ns += r->total_ns;
	for (size_t i = 0; i < r->n_stacks; i++)
		add_path(&f->stacks, to, h, mem_strdup(r->stacks[i].path), r->stacks[i].function,
			 r->stacks[i].n, r->stacks[i].total_ns);
}

struct waitpairs *waitpairs_fold(const struct waitpairs *w)
{
	struct folding f = {.out = mem_alloc(sizeof(*f.out))};

	f.out->estimated = w->estimated;
	for (size_t i = 0; i < w->n; i++)
		fold_row(&f, &w->rows[i]);
	for (size_t i = 0; i < f.out->n; i++) {
		struct waitpairs_row *r = &f.out->rows[i];

		r->who.n_processes = counted(&f, hash_who(r), 1);
		r->by.n_processes = counted(&f, hash_pair(r), 2);
		r->who.pid = r->who.n_processes == 1 ? r->who.pid : 0;
		r->by.pid = r->by.n_processes == 1 ? r->by.pid : 0;
	}
	idmap_release(&f.found);
	idmap_release(&f.stacks);
	idmap_release(&f.seen);
	idmap_release(&f.counts);
	order(f.out, true);
	return f.out;
}

/* --- idle --- */

static uint64_t hash_waits(const char *container, const char *comm, const char *class)
{
	return hash_str(hash_str(hash_str(HASH_SEED, container), comm), class);
}

int waitpairs_know_idle(struct waitpairs *w, const struct selection *sel, struct err *e)
{
	struct idmap total = {0}, idle = {0};
	struct waitsum *sum;
	int rc = waitsum_make(sel, WAITSUM_BY_COMMAND, &sum, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < sum->n; i++) {
		const struct waitsum_row *r = &sum->rows[i];
		uint64_t h = hash_waits(r->container, r->comm, r->class);
		bool fresh;

		if (r->partial) /* no thread ended it */
			continue;
		*idmap_ref(&total, h, &fresh) += r->total_ns;
		*idmap_ref(&idle, h, &fresh) += r->idle ? r->total_ns : 0;
	}
	for (size_t i = 0; i < w->n; i++) {
		const struct waitpairs_row *r = &w->rows[i];
		uint64_t h = hash_waits(r->who.container, r->who.comm, r->reason), all = 0,
			 part = 0;

		w->rows[i].idle =
			idmap_get(&total, h, &all) && idmap_get(&idle, h, &part) && part > all / 2;
	}
	idmap_release(&total);
	idmap_release(&idle);
	waitsum_free(sum);
	return 0;
}

static void end_free(struct waitpairs_end *x)
{
	free(x->container);
	free(x->comm);
}

void waitpairs_row_release(struct waitpairs_row *r)
{
	end_free(&r->who);
	end_free(&r->by);
	free(r->reason);
	for (size_t k = 0; k < r->n_stacks; k++) {
		free(r->stacks[k].path);
		free(r->stacks[k].function);
	}
	free(r->stacks);
}

void waitpairs_free(struct waitpairs *p)
{
	for (size_t i = 0; i < p->n; i++)
		waitpairs_row_release(&p->rows[i]);
	free(p->rows);
	waitheld_release(&p->held);
	free(p);
}
