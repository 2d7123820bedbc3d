/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/heapsites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/select/select.h"

struct entry {
	uint64_t key;
	struct heapsite site;
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

static struct heapsite *site_of(struct entry **all, const struct fold_frame *fr)
{
	uint64_t key = hash_u64(
		hash_str(hash_str(hash_str(HASH_SEED, fr->name), fr->file), fr->module), fr->line);
	struct entry *x;

	HASH_FIND(hh, *all, &key, sizeof(key), x);
	if (x)
		return &x->site;
	x = mem_alloc(sizeof(*x));
	x->key = key;
	x->site = (struct heapsite){.function = mem_strdup(fr->name),
				    .module = mem_strdup(fr->module),
				    .file = mem_strdup(fr->file),
				    .line = fr->line};
	HASH_ADD(hh, *all, key, sizeof(x->key), x);
	return &x->site;
}

/* What was allocated in the range; it may be nothing, for memory in use may be older. */
static int add_alloc(const struct selection *sel, struct entry **all, struct err *e)
{
	const struct fold_opts o = {.kind = STORE_KIND_ALLOC};
	struct fold *f = NULL;
	int ret = fold_make(sel, &o, &f, e);

	if (ret && e->exit == EXIT_NOTHING) {
		*e = (struct err){0};
		return 0;
	}
	for (size_t i = 1; !ret && i < f->n_nodes; i++) {
		const struct fold_node *n = &f->nodes[i];

		if (n->self_ns || n->self_samples) {
			struct heapsite *s = site_of(all, &f->frames[n->frame]);

			s->alloc_bytes += n->self_ns;
			s->alloc_objects += n->self_samples;
		}
	}
	fold_free(f);
	return ret;
}

static void add_inuse(const struct fold *f, struct entry **all)
{
	for (size_t i = 1; i < f->n_nodes; i++) {
		const struct fold_node *n = &f->nodes[i];

		if (n->self_ns || n->self_samples) {
			struct heapsite *s = site_of(all, &f->frames[n->frame]);

			s->inuse_bytes += n->self_ns;
			s->inuse_objects += n->self_samples;
		}
	}
}

/* Memory in use at one step: the range is cut there. */
static int add_step(const struct selection *sel, int64_t to_ns, size_t step, struct entry **all,
		    struct err *e)
{
	const struct fold_opts o = {.kind = STORE_KIND_INUSE};
	struct selection cut = *sel;
	struct fold *f = NULL;
	int ret;

	cut.to_ns = to_ns;
	ret = fold_make(&cut, &o, &f, e);
	if (ret && e->exit == EXIT_NOTHING) {
		*e = (struct err){0};
		return 0;
	}
	for (size_t i = 1; !ret && i < f->n_nodes; i++)
		if (f->nodes[i].self_ns)
			site_of(all, &f->frames[f->nodes[i].frame])->at[step] +=
				f->nodes[i].self_ns;
	fold_free(f);
	return ret;
}

/* The number of steps at which memory in use changed. */
static unsigned changes_of(const struct entry *all)
{
	unsigned changes = 0;

	for (size_t k = 1; k < HEAPSITES_STEPS; k++) {
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
		"sudo sonde record --families goheap -d 5m    sonde heap --growth --last 1h (a longer range)");
	return -ENODATA;
}

static int add_growth(const struct selection *sel, const struct fold *f, struct entry **all,
		      struct err *e)
{
	int64_t step = (f->to_ns - f->from_ns) / HEAPSITES_STEPS;
	int ret = 0;

	for (size_t k = 0; k < HEAPSITES_STEPS && !ret && step > 0; k++)
		ret = add_step(sel,
			       k + 1 == HEAPSITES_STEPS ? sel->to_ns :
							  f->from_ns + (int64_t)(k + 1) * step,
			       k, all, e);
	if (!ret && changes_of(*all) < HEAPSITES_CHANGES)
		return too_short(sel, changes_of(*all), e);
	for (struct entry *x = *all; x; x = x->hh.next)
		x->site.growth = heapsites_slope(x->site.at, HEAPSITES_STEPS, (double)step / 1e9);
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

	return x->growth < y->growth ? 1 : x->growth > y->growth ? -1 : by_inuse(a, b);
}

/* Has it something of what it is ranked by? */
static bool is_ranked(const struct heapsite *s, enum heapsites_order order)
{
	return order == HEAPSITES_BY_INUSE ? s->inuse_bytes :
	       order == HEAPSITES_BY_ALLOC ? s->alloc_bytes :
					     s->growth > 0;
}

static void site_release(struct heapsite *s)
{
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

int heapsites_make(const struct selection *sel, enum heapsites_order order, struct heapsites *out,
		   struct err *e)
{
	const struct fold_opts o = {.kind = STORE_KIND_INUSE};
	struct entry *all = NULL;
	struct heapsites h = {0};
	int ret = fold_make(sel, &o, &h.inuse, e);

	if (ret)
		return ret;
	add_inuse(h.inuse, &all);
	ret = add_alloc(sel, &all, e);
	if (!ret && order == HEAPSITES_BY_GROWTH)
		ret = add_growth(sel, h.inuse, &all, e);
	rows_take(&all, order, &h);
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
	fold_free(h->inuse);
	*h = (struct heapsites){0};
}
