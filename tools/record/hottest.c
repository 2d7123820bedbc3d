/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/hottest.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/ranking/hotfunctions.h"
#include "tools/print/term.h"

#define SHOWN            3
#define NAME_COLUMNS     18
#define FUNCTION_COLUMNS 48

struct group {
	const char *name;
	bool container;
	uint32_t pid; /* of its first process */
	size_t n;
	uint64_t ns;
};

struct groups {
	struct group *v;
	size_t n, cap;
	uint32_t *of; /* of each process: its group; UINT32_MAX: none */
};

static uint32_t group_of(struct groups *g, const struct fold_process *p)
{
	bool container = p->container && *p->container;
	const char *name = container ? p->container : p->comm;
	size_t i = 0;

	while (i < g->n && (g->v[i].container != container || strcmp(g->v[i].name, name)))
		i++;
	if (i == g->n) {
		mem_grow(g->v, g->n, g->cap);
		g->v[g->n++] = (struct group){.name = name, .container = container, .pid = p->pid};
	}
	g->v[i].n++;
	g->v[i].ns += p->ns;
	return (uint32_t)i;
}

struct scratch {
	struct hotfunctions functions;
	uint64_t *ns; /* by function */
};

static void gather(const struct fold *f, struct groups *g)
{
	g->of = mem_array(f->n_processes, sizeof(*g->of));
	for (size_t i = 0; i < f->n_processes; i++) {
		const struct fold_process *p = &f->processes[i];

		g->of[i] = p->self || !p->ns ? UINT32_MAX : group_of(g, p);
	}
}

/* The function in which a group spent most, and its share of the group. */
static const char *function_of(const struct fold *f, const struct groups *g, uint32_t group,
			       struct scratch *s, double *share)
{
	size_t best = 0;

	memset(s->ns, 0, s->functions.n * sizeof(*s->ns));
	for (size_t i = 0; i < f->n_leaves; i++)
		if (g->of[f->leaves[i].process] == group && f->leaves[i].node)
			s->ns[s->functions.of[f->leaves[i].node]] += f->leaves[i].ns;
	for (size_t i = 1; i < s->functions.n; i++)
		if (s->ns[i] > s->ns[best])
			best = i;
	*share = s->functions.n ? (double)s->ns[best] / (double)g->v[group].ns : 0;
	return s->functions.n && s->ns[best] ? f->frames[s->functions.frame[best]].name :
					       "[no stack]";
}

static void print_group(const struct fold *f, const struct groups *g, uint32_t i,
			struct scratch *scratch, bool first, FILE *out)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT, function cleanup_strbuf = STRBUF_INIT;
	const struct group *v = &g->v[i];
	double share;
	char cpu[32], who[32];

	term_add_middle(&name, v->name, NAME_COLUMNS);
	term_add_middle(&function, function_of(f, g, i, scratch, &share), FUNCTION_COLUMNS);
	if (v->n == 1)
		snprintf(who, sizeof(who), "pid %u", v->pid);
	else
		snprintf(who, sizeof(who), "%zu procs", v->n);
	fprintf(out, "  %-8s %s%*s %-11s %-11s %s %.0f %%\n", first ? "hottest" : "",
		strbuf_str(&name), NAME_COLUMNS - (int)term_columns(strbuf_str(&name)), "", who,
		units_cores(fold_cores(f, v->ns), cpu, sizeof(cpu)), strbuf_str(&function),
		100 * share);
}

static int by_ns(const void *a, const void *b, void *ctx)
{
	const struct group *v = ctx, *x = &v[*(const uint32_t *)a], *y = &v[*(const uint32_t *)b];

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

const char *hottest_print(const struct fold *f, FILE *out)
{
	struct scratch scratch;
	cleanup_free uint32_t *order = NULL;
	struct groups g = {0};
	const char *first = NULL;

	gather(f, &g);
	hotfunctions_init(&scratch.functions, f);
	scratch.ns = mem_array(scratch.functions.n, sizeof(*scratch.ns));
	order = mem_array(g.n, sizeof(*order));
	for (uint32_t i = 0; i < g.n; i++)
		order[i] = i;
	if (g.n)
		qsort_r(order, g.n, sizeof(*order), by_ns, g.v);
	for (size_t i = 0; i < g.n && i < SHOWN; i++)
		print_group(f, &g, order[i], &scratch, !i, out);
	if (g.n)
		first = g.v[order[0]].name;
	free(scratch.ns);
	hotfunctions_release(&scratch.functions);
	free(g.v);
	free(g.of);
	return first;
}
