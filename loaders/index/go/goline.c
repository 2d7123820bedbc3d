/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/goline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"

#define PARENTS_MAX 64 /* calls in one another */

/* One function. */
struct at {
	struct pclntab_func f;
	struct pclntab_record rec;
	uint64_t size;
	uint64_t tree; /* 0: nothing is inlined */
	uint32_t calls;
};

/* ---- files and names, each asked for once ---- */

static uint32_t file_number(struct goline *g, const struct at *a, int32_t number)
{
	size_t key;
	const char *name = pclntab_file(g->tab, &a->rec, number, &key);
	uint64_t id;

	if (!name)
		return 0;
	if (!idmap_get(&g->files, key, &id)) {
		id = lineset_file(g->set, name);
		idmap_set(&g->files, key, id);
	}
	return (uint32_t)id;
}

static uint32_t name_number(struct goline *g, const struct goinline_call *c)
{
	uint64_t id;

	if (!idmap_get(&g->names, c->name_key, &id)) {
		id = lineset_name(g->set, c->name, false);
		idmap_set(&g->names, c->name_key, id);
	}
	return (uint32_t)id;
}

static int32_t value_at(struct goline *g, const struct at *a, uint32_t place, uint64_t pc)
{
	struct gopc p = gopc_open(g->tab, place, a->size);

	while (g->steps < GOLINE_STEPS_MAX && gopc_next(&p)) {
		g->steps++;
		if (p.end > pc)
			return p.value;
	}
	return -1;
}

/* ---- lines ---- */

static void row(struct goline *g, uint64_t addr, uint32_t file, int32_t line)
{
	uint32_t number = line > 0 ? (uint32_t)line : 0;

	if (g->open && g->last_file == file && g->last_line == number)
		return;
	lineset_row(g->set, addr, file, number, 0);
	g->last_file = file;
	g->last_line = number;
	g->open = true;
}

static void lines_add(struct goline *g, const struct at *a)
{
	struct gopc file = gopc_open(g->tab, a->rec.pcfile, a->size);
	struct gopc line = gopc_open(g->tab, a->rec.pcln, a->size);
	uint32_t number = 0;

	for (uint64_t pc = 0; pc < a->size;) {
		const uint64_t file_began = file.end;
		int32_t value = gopc_value(&file, pc), n = gopc_value(&line, pc);

		if (!pc || pc >= file_began)
			number = file_number(g, a, value);
		/* a line without its file, or a file without a line, is as Go sees it: not known */
		row(g, a->f.start + pc, n > 0 ? number : 0, number ? n : 0);
		pc = file.end < line.end ? file.end : line.end;
	}
}

/* ---- inlined calls ---- */

static int32_t parent_of(struct goline *g, const struct at *a, const struct goinline_call *c)
{
	return c->by_pc ? value_at(g, a, pclntab_pcdata(g->tab, &a->rec, g->trees->pcdata),
				   c->parent_pc) :
			  c->parent;
}

/* A new node for call `c`, whose caller's node is there already. */
static uint32_t node_make(struct goline *g, const struct at *a, const struct goinline_call *c,
			  uint32_t parent)
{
	int32_t file = c->by_pc ? value_at(g, a, a->rec.pcfile, c->parent_pc) : c->file;
	int32_t line = c->by_pc ? value_at(g, a, a->rec.pcln, c->parent_pc) : c->line;

	return lineset_inline(g->set,
			      &(struct lineset_call){.parent = parent,
						     .name = name_number(g, c),
						     .file = file_number(g, a, file),
						     .line = line > 0 ? (uint32_t)line : 0});
}

/* The node of call `i`; its callers' are made first. 0: the table is damaged there, or a limit is
 * reached. */
static uint32_t node_of(struct goline *g, const struct at *a, int32_t i)
{
	struct goinline_call calls[PARENTS_MAX];
	int32_t numbers[PARENTS_MAX];
	uint32_t node = 0;
	size_t n = 0;

	while (i >= 0 && (uint32_t)i < a->calls && n < PARENTS_MAX) {
		if (g->nodes[i]) {
			node = g->nodes[i];
			break;
		}
		if (!goinline_call(g->trees, g->tab, a->tree, a->size, i, &calls[n]))
			return 0;
		numbers[n] = i;
		i = parent_of(g, a, &calls[n++]);
	}
	if (n == PARENTS_MAX)
		return 0;
	while (n--) {
		node = node_make(g, a, &calls[n], node);
		g->nodes[numbers[n]] = node;
	}
	return node;
}

static bool nodes_clear(struct goline *g, size_t count)
{
	uint32_t *bigger;

	if (count > g->node_cap) {
		bigger = realloc(g->nodes, count * 2 * sizeof(*bigger));
		if (!bigger) {
			g->failed = -ENOMEM;
			return false;
		}
		g->nodes = bigger;
		g->node_cap = count * 2;
	}
	memset(g->nodes, 0, count * sizeof(*g->nodes));
	return true;
}

static void inlines_add(struct goline *g, struct at *a)
{
	struct gopc p;

	if (!g->trees)
		return;
	a->tree = goinline_tree(g->trees, g->tab, &a->rec);
	a->calls = a->tree ? goinline_count(g->trees, g->tab, &a->rec, a->size) : 0;
	if (!a->calls || !nodes_clear(g, a->calls))
		return;
	p = gopc_open(g->tab, pclntab_pcdata(g->tab, &a->rec, g->trees->pcdata), a->size);
	while (gopc_next(&p)) {
		uint32_t node = p.value >= 0 ? node_of(g, a, p.value) : 0;

		if (node)
			lineset_range(g->set, node, a->f.start + p.start, a->f.start + p.end);
	}
}

void goline_function(struct goline *g, uint64_t text, uint32_t i)
{
	struct at a = {0};

	if (!pclntab_func(g->tab, text, i, &a.f) || !pclntab_record(g->tab, i, &a.rec) ||
	    a.f.start < g->told)
		return;
	g->told = a.f.end;
	a.size = a.f.end - a.f.start;
	lines_add(g, &a);
	inlines_add(g, &a);
}

void goline_release(struct goline *g)
{
	free(take_ptr(g->nodes));
	idmap_release(&g->files);
	idmap_release(&g->names);
}
