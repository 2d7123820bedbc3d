/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goline_add: finds a file's trees of inlined calls, by trial.
 *
 * Which tables hold them, and the base of funcdata, differ between versions, and a file's version
 * may be wrong. So each possibility (from 1.18 on: each word of moduledata that could be gofunc) is
 * tried on the trees of up to TRIED functions: all their records must name a function and a place
 * inside. The first that passes is used; with a wrong one, already the first names do not begin
 * where a name begins.
 */
#include "loaders/index/go/goline.h"

#include <errno.h>

#include "loaders/index/elf/region.h"
#include "schema/base/array.h"

#define TRIED        48
#define TREES_MAX    (64ull << 20)
#define GOFUNC_FIRST 30 /* words of moduledata */
#define GOFUNC_LAST  56

/* In files whose funcdata are addresses: numbers of pcdata and funcdata of Go 1.13
 * to 1.16, 1.17, 1.12. */
static const struct {
	uint32_t pcdata, funcdata;
} by_address[] = {{2, 4}, {2, 3}, {1, 2}};

struct tree {
	uint64_t at, size; /* of the tree; of its function */
	uint32_t calls;
};

static bool tree_get(const struct goinline *g, const struct go_table *t, uint32_t i,
		     struct tree *out)
{
	struct pclntab_record r;
	struct pclntab_func f;

	if (!pclntab_func(&t->tab, t->text, i, &f) || !pclntab_record(&t->tab, i, &r))
		return false;
	out->size = f.end - f.start;
	out->at = goinline_tree(g, &t->tab, &r);
	out->calls = out->at ? goinline_count(g, &t->tab, &r, out->size) : 0;
	return out->calls > 0;
}

static bool tree_fits(const struct goinline *g, const struct go_table *t, const struct tree *tree)
{
	struct goinline_call c;

	for (uint32_t i = 0; i < tree->calls; i++)
		if (!goinline_call(g, &t->tab, tree->at, tree->size, (int32_t)i, &c) ||
		    c.parent >= (int32_t)i)
			return false;
	return true;
}

/* 1: it fits; 0: not; or -errno. */
static int fits(struct elf_file *f, const struct go_table *t, struct goinline g)
{
	unsigned tried = 0;

	for (uint32_t i = 0; i < t->tab.func_count && tried < TRIED; i++) {
		cleanup_region struct region r = {0};
		struct tree tree;
		int rc;

		if (!tree_get(&g, t, i, &tree))
			continue;
		rc = region_read(f, tree.at, tree.calls * goinline_stride(&t->tab), &r);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		g.bytes = r.bytes;
		g.len = (size_t)r.len;
		g.vaddr = r.vaddr;
		if (!tree_fits(&g, t, &tree))
			return 0;
		tried++;
	}
	return tried > 0;
}

static int find_by_address(struct elf_file *f, const struct go_table *t, struct goinline *out)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(by_address); i++) {
		*out = (struct goinline){.pcdata = by_address[i].pcdata,
					 .funcdata = by_address[i].funcdata};
		rc = fits(f, t, *out);
	}
	return rc;
}

static int find_by_base(struct elf_file *f, const struct go_table *t, struct goinline *out)
{
	int rc = 0;

	for (unsigned w = GOFUNC_FIRST; !rc && t->module.addr && w <= GOFUNC_LAST; w++) {
		*out = (struct goinline){.pcdata = 2, .funcdata = 3, .base = t->module.words[w]};
		if (elf_bytes_at(f, out->base))
			rc = fits(f, t, *out);
	}
	return rc;
}

/* The addresses that all trees together take. */
static uint64_t extent(const struct goinline *g, const struct go_table *t, uint64_t *lo)
{
	uint64_t hi = 0;

	*lo = UINT64_MAX;
	for (uint32_t i = 0; i < t->tab.func_count; i++) {
		struct tree tree;
		uint64_t end;

		if (!tree_get(g, t, i, &tree))
			continue;
		end = tree.at + tree.calls * goinline_stride(&t->tab);
		*lo = tree.at < *lo ? tree.at : *lo;
		hi = end > hi ? end : hi;
	}
	return hi > *lo ? hi - *lo : 0;
}

/* 1: they are in `out` and `r`; 0: there are none, or they cannot be found; or -errno. */
static int trees_read(struct elf_file *f, const struct go_table *t, struct goinline *out,
		      struct region *r)
{
	uint64_t lo, len;
	int rc = t->tab.relative ? find_by_base(f, t, out) : find_by_address(f, t, out);

	if (rc <= 0)
		return rc;
	len = extent(out, t, &lo);
	if (len > TREES_MAX)
		return 0;
	rc = region_read(f, lo, len, r);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	out->bytes = r->bytes;
	out->len = (size_t)r->len;
	out->vaddr = r->vaddr;
	return 1;
}

int goline_add(struct elf_file *f, const struct go_table *t, struct lineset *set)
{
	cleanup_region struct region r = {0};
	struct goinline trees;
	struct goline g = {.tab = &t->tab, .set = set};
	struct pclntab_func last;
	uint64_t end = 0;
	int rc = trees_read(f, t, &trees, &r);

	if (rc < 0)
		return rc;
	g.trees = rc ? &trees : NULL;
	for (uint32_t i = 0; i < t->tab.func_count && !g.failed; i++) {
		goline_function(&g, t->text, i);
		if (pclntab_func(&t->tab, t->text, i, &last))
			end = last.end;
	}
	lineset_end(set, end);
	rc = g.failed;
	goline_release(&g);
	return rc;
}
