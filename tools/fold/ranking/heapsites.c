/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/heapsites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/fold/ranking/heaptotals.h"
#include "tools/fold/ranking/memsite.h"
#include "tools/select/select.h"

#define READING_NS (150 * NSEC_PER_SEC) /* no family reads a process less often */

struct entry {
	uint64_t key;
	struct heapsite site;
	uint64_t who;
	uint64_t unknown; /* bytes at the first end, of processes whose beginning is not known */
	bool estimated;   /* all of its bytes are estimates of family mem */
	UT_hash_handle hh;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double heapsites_slope(const uint64_t *values, size_t n, double step)
{
	double slopes[HEAPSITES_STEPS * HEAPSITES_STEPS];
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			slopes[k++] =
				((double)values[j] - (double)values[i]) / ((double)(j - i) * step);
	if (!k || step <= 0)
		return 0;
	qsort(slopes, k, sizeof(*slopes), by_value);
	return k % 2 ? slopes[k / 2] : (slopes[k / 2 - 1] + slopes[k / 2]) / 2;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Kendall's S: pairs that rise, less those that fall. */
static int trend_of(const uint64_t *v, size_t n)
{
	int s = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			s += compare(v[j], v[i]);
	return s;
}

bool heapsites_grows(const uint64_t at[HEAPSITES_STEPS + 1])
{
	const uint64_t first = at[0], last = at[HEAPSITES_STEPS], half = at[HEAPSITES_STEPS / 2];
	uint64_t rises = 0, falls = 0, most = 0;

	if (last < first || last - first < HEAPSITES_LEAST ||
	    trend_of(at + 1, HEAPSITES_STEPS) < HEAPSITES_TREND)
		return false;
	for (size_t i = 0; i < HEAPSITES_STEPS; i++) {
		uint64_t up = at[i + 1] > at[i] ? at[i + 1] - at[i] : 0;

		rises += up;
		falls += at[i + 1] < at[i] ? at[i] - at[i + 1] : 0;
		most = up > most ? up : most;
	}
	return most / 3 < (last - first) / 5 && falls <= rises / 3 && last > half &&
	       last - half >= (last - first) / 7;
}

/* "[page cache]" without its brackets. */
static char *use_text(const char *use)
{
	size_t len = strlen(use);

	return len > 2 && use[0] == '[' ? mem_strndup(use + 1, len - 2) : mem_strdup(use);
}

static struct entry *site_of(struct entry **all, const char *who, const char *use,
			     const struct fold_frame *fr)
{
	uint64_t key = hash_u64(
		hash_str(hash_str(hash_str(hash_str(hash_str(HASH_SEED, fr->name), fr->file),
					   fr->module),
				  who),
			 use),
		fr->line);
	struct entry *x;

	HASH_FIND(hh, *all, &key, sizeof(key), x);
	if (x)
		return x;
	x = mem_alloc(sizeof(*x));
	x->key = key;
	x->who = hash_str(HASH_SEED, who);
	x->estimated = true;
	x->site = (struct heapsite){.who = mem_strdup(who),
				    .use = use_text(use),
				    .function = mem_strdup(fr->name),
				    .module = mem_strdup(fr->module),
				    .file = mem_strdup(fr->file),
				    .line = fr->line};
	HASH_ADD(hh, *all, key, sizeof(x->key), x);
	return x;
}

/* ---- the two families ---- */

struct source { /* what is in use (0: it does not know), and what was allocated (0: none) */
	enum store_kind inuse, alloc;
	const struct idmap *exact;  /* processes that another source has; NULL: none */
	const struct idmap *allocs; /* the same, of what was allocated alone */
};

enum into { INTO_INUSE, INTO_ALLOC, INTO_STEP };

static bool is_covered(const struct source *src, const struct fold_process *p, enum into into)
{
	uint64_t at;

	return (src->exact && idmap_get(src->exact, heapjava_key(p), &at)) ||
	       (into == INTO_ALLOC && src->allocs && idmap_get(src->allocs, heapjava_key(p), &at));
}

/* The node of the line that a stack is counted by. Of a Java program the innermost frame is what
 * was allocated: "new byte[]". */
static uint32_t line_of(const struct source *src, const struct fold *f, uint32_t node)
{
	if (src->alloc == STORE_KIND_JAVAALLOC &&
	    !strncmp(f->frames[f->nodes[node].frame].name, "new ", 4))
		node = f->nodes[node].parent;
	return src->alloc == STORE_KIND_ALLOC ? node :
	       src->inuse == STORE_KIND_PAGES ? memsite_page_node(f, node) :
						memsite_node(f, node);
}

struct step {
	size_t number;             /* 0: the beginning */
	int64_t from_ns;           /* processes that ended before it do not count */
	int64_t began_ns;          /* of the range */
	struct idmap *at_first;    /* processes that are there at the beginning */
	bool outlives;             /* what a process has may be there after its end */
	struct heaptotals *totals; /* of family mem; NULL: not asked */
};

/* What a process had when the recording began, or when it did (loaders/mem/held.h), has not grown.
 */
#define BEFORE    "[from before the recording]"
#define INHERITED "[from its parent]"

static void step_add(const struct source *src, struct entry *x, const struct fold_leaf *l,
		     const struct fold_process *p, const struct step *step)
{
	uint64_t known;

	if (!step->outlives && p->end_ns && p->end_ns < step->from_ns)
		return;
	x->estimated &= src->inuse == STORE_KIND_MEM;
	if (step->totals && src->inuse == STORE_KIND_MEM &&
	    strcmp(x->site.function, INHERITED) != 0)
		heaptotals_add(step->totals, heapjava_key(p), x->who, p->start_ns >= step->began_ns,
			       step->number, l->ns);
	x->site.at[step->number] += l->ns;
	if (l->max > x->site.weight)
		x->site.weight = l->max;
	if (step->number == 1 && p->start_ns < step->began_ns &&
	    !idmap_get(step->at_first, heapjava_key(p), &known))
		x->unknown += l->ns;
}

static void site_add(struct heapsite *s, const struct fold_leaf *l, enum into into)
{
	*(into == INTO_ALLOC ? &s->alloc_bytes : &s->inuse_bytes) += l->ns;
	*(into == INTO_ALLOC ? &s->alloc_objects : &s->inuse_objects) += l->samples;
}

/* `step`: of INTO_STEP. */
static void leaves_add(const struct source *src, const struct fold *f, struct entry **all,
		       enum into into, const struct step *step)
{
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *l = &f->leaves[i];
		const struct fold_process *p = &f->processes[l->process];
		uint32_t node = line_of(src, f, l->node);
		const char *use = src->inuse == STORE_KIND_PAGES && node != l->node ?
					  f->frames[f->nodes[l->node].frame].name :
					  "";
		struct entry *x;

		if ((!l->ns && !l->samples) || is_covered(src, p, into))
			continue;
		x = site_of(all, p->container[0] ? p->container : p->comm, use,
			    &f->frames[f->nodes[node].frame]);
		if (into == INTO_STEP)
			step_add(src, x, l, p, step);
		else
			site_add(&x->site, l, into);
	}
}

/* Nothing of the kind is no error. *out NULL: there is nothing. */
static int fold_some(const struct selection *sel, enum store_kind kind, struct fold **out,
		     struct err *e)
{
	const struct fold_opts o = {.kind = kind, .leaves = true};
	int ret;

	*out = NULL;
	ret = fold_make(sel, &o, out, e);
	if (ret && e->exit == EXIT_NOTHING) {
		*e = (struct err){0};
		return 0;
	}
	return ret;
}

static int add_kind(const struct selection *sel, const struct source *src, enum into into,
		    const struct step *step, struct entry **all, struct err *e)
{
	struct fold *f;
	int ret = fold_some(sel, into == INTO_ALLOC ? src->alloc : src->inuse, &f, e);

	for (size_t i = 0; !ret && f && step && !step->number && i < f->n_processes; i++)
		idmap_set(step->at_first, heapjava_key(&f->processes[i]), 1);

	if (!ret && f)
		leaves_add(src, f, all, into, step);
	fold_free(f);
	return ret;
}

/* Memory in use at one step: the range is cut there. */
static int add_step(const struct selection *sel, const struct source *sources, int64_t to_ns,
		    const struct step *step, struct entry **all, struct err *e)
{
	struct selection cut = *sel;
	int ret = 0;

	if (!step->number)
		cut.from_ns = to_ns - READING_NS;
	cut.to_ns = to_ns;
	for (const struct source *s = sources; s->inuse && !ret; s++)
		ret = add_kind(&cut, s, INTO_STEP, step, all, e); /* Java's, the last, has none */
	return ret;
}

/* The number of steps at which memory in use changed. */
static unsigned changes_of(const struct entry *all)
{
	unsigned changes = 0;

	for (size_t k = 2; k <= HEAPSITES_STEPS; k++) {
		bool changed = false;

		for (const struct entry *x = all; x && !changed; x = x->hh.next)
			changed = x->site.at[k] != x->site.at[k - 1];
		changes += changed;
	}
	return changes;
}

static int too_short(const struct selection *sel, unsigned changes, struct err *e)
{
	err_set(e, -ENODATA, EXIT_NOTHING,
		"what is in use changed %u time%s in %s: that is too little to tell growth by, which takes %u",
		changes, changes == 1 ? "" : "s", sel->range, HEAPSITES_CHANGES);
	err_fix(e,
		"sudo sonde record --families mem,goheap -d 5m    sonde heap --growth --last 1h (a longer range)");
	return -ENODATA;
}

static int add_steps(const struct selection *sel, const struct source *sources,
		     const struct fold *f, int64_t width, bool between, struct heaptotals *totals,
		     struct entry **all, struct err *e)
{
	struct idmap at_first = {0};
	int ret = 0;

	for (size_t k = 0; k <= HEAPSITES_STEPS && !ret; k++) {
		if (!between && k > 1 && k < HEAPSITES_STEPS)
			continue;
		int64_t to = f->from_ns + (int64_t)k * width;
		struct step step = {.number = k,
				    .from_ns = k ? to - width : to,
				    .began_ns = f->from_ns,
				    .at_first = &at_first,
				    .outlives = sources->inuse == STORE_KIND_PAGES,
				    .totals = totals};

		ret = add_step(sel, sources, k == HEAPSITES_STEPS ? sel->to_ns : to, &step, all, e);
	}
	idmap_release(&at_first);
	return ret;
}

/* What processes had at the beginning of which that is not known: one step before the first end. */
static void first_guess(struct entry *x, double step)
{
	uint64_t less = step > 0 ? (uint64_t)step : 0;

	x->site.at[0] += x->unknown > less ? x->unknown - less : 0;
}

/* Readings of which nothing has become more. Of Go's heap few readings can hide growth: the runtime
 * counts at the end of a collection. */
static bool is_steady(const struct fold *f, const struct entry *all)
{
	if (f->kind->kind != STORE_KIND_MEM && f->kind->kind != STORE_KIND_PAGES)
		return false;
	for (const struct entry *x = all; x; x = x->hh.next)
		if (x->site.at[HEAPSITES_STEPS] >= x->site.at[1] + HEAPSITES_LEAST)
			return false;
	return true;
}

static int add_growth(const struct selection *sel, const struct source *sources,
		      const struct fold *f, struct entry **all, struct err *e)
{
	int64_t width = (f->to_ns - f->from_ns) / HEAPSITES_STEPS;
	struct heaptotals totals = {0};
	int ret = width > 0 ? add_steps(sel, sources, f, width, true, &totals, all, e) : 0;

	if (!ret && changes_of(*all) < HEAPSITES_CHANGES && !is_steady(f, *all))
		ret = too_short(sel, changes_of(*all), e);
	for (struct entry *x = *all; x; x = x->hh.next) {
		struct heapsite *s = &x->site;

		s->growth = heapsites_slope(s->at + 1, HEAPSITES_STEPS, (double)width / 1e9);
		first_guess(x, s->growth * (double)width / 1e9);
		s->grown = heapsites_grows(s->at) ? s->at[HEAPSITES_STEPS] - s->at[0] : 0;
		if (x->estimated && (s->grown < HEAPSITES_SAMPLES * s->weight ||
				     !heaptotals_explain(&totals, x->who, s->grown)))
			s->grown = 0;
	}
	heaptotals_release(&totals);
	return ret;
}

static int add_difference(const struct selection *sel, const struct source *sources,
			  const struct fold *f, struct entry **all, struct err *e)
{
	int64_t width = (f->to_ns - f->from_ns) / HEAPSITES_STEPS;
	int ret = add_steps(sel, sources, f, width, false, NULL, all, e);

	for (struct entry *x = *all; x; x = x->hh.next) {
		struct heapsite *s = &x->site;

		first_guess(x, 0);
		if (s->at[HEAPSITES_STEPS] >= s->at[0] + HEAPSITES_LEAST &&
		    s->at[HEAPSITES_STEPS] - s->at[0] >= HEAPSITES_DIFFER * s->weight)
			s->grown = s->at[HEAPSITES_STEPS] - s->at[0];
	}
	return ret;
}

static int names_compare(const struct heapsite *x, const struct heapsite *y)
{
	int c = strcmp(x->function, y->function);

	return c ? c : x->line < y->line ? -1 : x->line > y->line;
}

static int by_inuse(const void *a, const void *b)
{
	const struct heapsite *x = a, *y = b;

	return x->inuse_bytes != y->inuse_bytes ? x->inuse_bytes < y->inuse_bytes ? 1 : -1 :
						  names_compare(x, y);
}

static int by_alloc(const void *a, const void *b)
{
	const struct heapsite *x = a, *y = b;

	return x->alloc_bytes != y->alloc_bytes ? x->alloc_bytes < y->alloc_bytes ? 1 : -1 :
						  by_inuse(a, b);
}

static int by_growth(const void *a, const void *b)
{
	const struct heapsite *x = a, *y = b;

	return x->grown != y->grown ? x->grown < y->grown ? 1 : -1 : by_inuse(a, b);
}

/* Has it something of what it is ranked by? */
static bool is_ranked(const struct heapsite *s, enum heapsites_order order)
{
	if (order >= HEAPSITES_BY_GROWTH &&
	    (!strcmp(s->function, BEFORE) || !strcmp(s->function, INHERITED)))
		return false;
	return order == HEAPSITES_BY_INUSE ? s->inuse_bytes :
	       order == HEAPSITES_BY_ALLOC ? s->alloc_bytes :
					     s->grown > 0;
}

static void site_release(struct heapsite *s)
{
	free(s->who);
	free(s->use);
	free(s->function);
	free(s->module);
	free(s->file);
}

static void rows_take(struct entry **all, enum heapsites_order order, struct heapsites *out)
{
	struct entry *x, *next;

	out->rows = mem_array(HASH_COUNT(*all) + 1, sizeof(*out->rows));
	out->n = 0;
	HASH_ITER (hh, *all, x, next) {
		if (is_ranked(&x->site, order))
			out->rows[out->n++] = x->site;
		else
			site_release(&x->site);
		HASH_DEL(*all, x);
		free(x);
	}
	qsort(out->rows, out->n, sizeof(*out->rows),
	      order == HEAPSITES_BY_INUSE ? by_inuse :
	      order == HEAPSITES_BY_ALLOC ? by_alloc :
					    by_growth);
}

/* Both families' memory in use; *f: the first that there is. EXIT_NOTHING: neither is. */
static int inuse_make(const struct selection *sel, struct source *sources, struct idmap *exact,
		      struct entry **all, struct heapsites *out, struct err *e)
{
	const struct fold_opts o = {.kind = STORE_KIND_MEM, .leaves = true};
	struct fold *go, *any = NULL;
	int ret = fold_some(sel, STORE_KIND_INUSE, &go, e);

	if (ret)
		return ret;
	for (size_t i = 0; go && i < go->n_processes; i++)
		idmap_set(exact, heapjava_key(&go->processes[i]), 1);
	if (go)
		leaves_add(&sources[0], go, all, INTO_INUSE, NULL);
	ret = fold_make(sel, &o, &any, e);
	if (ret && (!go || e->exit != EXIT_NOTHING)) {
		fold_free(go);
		return ret;
	}
	if (ret)
		*e = (struct err){0};
	else
		leaves_add(&sources[1], any, all, INTO_INUSE, NULL);
	if (any)
		heapjava_find(any, exact, &out->java);
	out->touched = any;
	out->inuse = go ? go : any;
	if (go)
		fold_free(any);
	return 0;
}

/* All pages of the host. */
static int pages_make(const struct selection *sel, const struct source *source, struct entry **all,
		      struct heapsites *out, struct err *e)
{
	const struct fold_opts o = {.kind = STORE_KIND_PAGES, .leaves = true};
	int ret = fold_make(sel, &o, &out->inuse, e);

	if (!ret)
		leaves_add(source, out->inuse, all, INTO_INUSE, NULL);
	return ret;
}

/* What Java programs allocated. What they have in use is not known: where nothing else was
 * recorded, that is what rows are ranked by. */
static int java_make(const struct selection *sel, int found, enum heapsites_order *order,
		     struct idmap *allocs, struct heapsites *out, struct err *e)
{
	struct err why = {0};
	struct fold *f;
	int ret;

	if (found && (e->exit != EXIT_NOTHING || *order > HEAPSITES_BY_ALLOC))
		return found;
	ret = fold_some(sel, STORE_KIND_JAVAALLOC, &f, &why);
	for (size_t i = 0; f && i < f->n_processes; i++) {
		idmap_set(allocs, heapjava_key(&f->processes[i]), 1);
		heapjava_forget(&out->java, &f->processes[i]);
	}
	if (ret || !found || !f) {
		fold_free(f);
		if (ret)
			*e = why;
		return ret ? ret : found;
	}
	*e = (struct err){0};
	*order = HEAPSITES_BY_ALLOC;
	out->inuse = f;
	return 0;
}

int heapsites_make(const struct selection *sel, enum heapsites_of of, enum heapsites_order order,
		   struct heapsites *out, struct err *e)
{
	struct idmap exact = {0}, allocs = {0};
	struct source processes[] = {{STORE_KIND_INUSE, STORE_KIND_ALLOC, NULL, NULL},
				     {STORE_KIND_MEM, STORE_KIND_PAGEFAULTS, &exact, &allocs},
				     {0, STORE_KIND_JAVAALLOC, NULL, NULL},
				     {0}},
		      pages[] = {{STORE_KIND_PAGES, 0, NULL, NULL}, {0}},
		      *sources = of == HEAPSITES_PAGES ? pages : processes;
	struct entry *all = NULL;
	struct heapsites h = {0};
	int ret = of == HEAPSITES_PAGES ? pages_make(sel, sources, &all, &h, e) :
					  inuse_make(sel, sources, &exact, &all, &h, e);

	if (of != HEAPSITES_PAGES)
		ret = java_make(sel, ret, &order, &allocs, &h, e);
	for (struct source *s = sources; s->alloc && !ret; s++)
		ret = add_kind(sel, s, INTO_ALLOC, NULL, &all, e);
	if (!ret && order == HEAPSITES_BY_GROWTH)
		ret = add_growth(sel, sources, h.inuse, &all, e);
	if (!ret && order == HEAPSITES_BY_DIFFERENCE)
		ret = add_difference(sel, sources, h.inuse, &all, e);
	rows_take(&all, order, &h);
	idmap_release(&exact);
	idmap_release(&allocs);
	if (ret)
		heapsites_release(&h);
	else
		*out = h;
	return ret;
}

void heapsites_release(struct heapsites *h)
{
	for (size_t i = 0; i < h->n; i++)
		site_release(&h->rows[i]);
	free(h->rows);
	heapjava_release(&h->java);
	fold_free(h->inuse);
	*h = (struct heapsites){0};
}
