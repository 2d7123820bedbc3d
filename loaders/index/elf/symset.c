/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/symset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

void symset_init(struct symset *s, struct elf_range *code, size_t code_count)
{
	*s = (struct symset){.code = code, .code_count = code_count};
}

void symset_release(struct symset *s)
{
	free(take_ptr(s->code));
	free(take_ptr(s->symbols));
	for (size_t i = 0; i < s->kept_count; i++)
		free(s->kept[i]);
	free(take_ptr(s->kept));
	s->count = s->cap = s->kept_count = s->kept_cap = s->code_count = 0;
}

void symset_keep(struct symset *s, void *buf)
{
	mem_grow(s->kept, s->kept_count, s->kept_cap);
	s->kept[s->kept_count++] = buf;
}

/* The code range that holds `addr`; NULL: none. */
static const struct elf_range *code_at(const struct symset *s, uint64_t addr)
{
	size_t lo = 0, hi = s->code_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->code[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < s->code[lo - 1].end ? &s->code[lo - 1] : NULL;
}

int symset_add(struct symset *s, const struct symset_symbol *sym)
{
	const struct elf_range *r = code_at(s, sym->addr);

	if (!r)
		return 0;
	if (s->count >= SYMSET_MAX)
		return -ENOSPC;
	if (s->count == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 1024;
		void *p = realloc(s->symbols, cap * sizeof(*s->symbols));

		if (!p)
			return -ENOMEM;
		s->symbols = p;
		s->cap = cap;
	}
	s->symbols[s->count] = *sym;
	if (sym->size > r->end - sym->addr)
		s->symbols[s->count].size = r->end - sym->addr;
	s->count++;
	return 0;
}

/* ---- order ---- */

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

/* One stable pass over the digit at `shift`; false: all have the same digit, nothing was moved. */
static bool radix_pass(const struct symset_symbol *in, struct symset_symbol *out, size_t n,
		       unsigned shift)
{
	size_t at[DIGITS] = {0};
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		at[(in[i].addr >> shift) & (DIGITS - 1)]++;
	if (at[(in[0].addr >> shift) & (DIGITS - 1)] == n)
		return false;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t here = at[d];

		at[d] = sum;
		sum += here;
	}
	for (size_t i = 0; i < n; i++)
		out[at[(in[i].addr >> shift) & (DIGITS - 1)]++] = in[i];
	return true;
}

static int sort_by_address(struct symset *s)
{
	struct symset_symbol *a = s->symbols, *b;

	if (s->count < 2)
		return 0;
	b = malloc(s->cap * sizeof(*b));
	if (!b)
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS)
		if (radix_pass(a, b, s->count, shift)) {
			struct symset_symbol *t = a;

			a = b;
			b = t;
		}
	s->symbols = a;
	free(b);
	return 0;
}

static size_t underscores(const char *s)
{
	return strspn(s, "_");
}

/* Is `a` the better name for the address? */
static bool better(const struct symset_symbol *a, const struct symset_symbol *b)
{
	size_t la, lb;

	if (a->kind != b->kind)
		return a->kind < b->kind;
	if (a->bind != b->bind)
		return a->bind < b->bind;
	if (underscores(a->name) != underscores(b->name))
		return underscores(a->name) < underscores(b->name);
	la = strlen(a->name);
	lb = strlen(b->name);
	if (la != lb)
		return la < lb;
	la = (size_t)strcmp(a->name, b->name);
	return la ? (int)la < 0 : a->size > b->size;
}

static void choose_one_each(struct symset *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		if (kept && s->symbols[kept - 1].addr == s->symbols[i].addr) {
			if (better(&s->symbols[i], &s->symbols[kept - 1]))
				s->symbols[kept - 1] = s->symbols[i];
			continue;
		}
		s->symbols[kept++] = s->symbols[i];
	}
	s->count = kept;
}

/* Rule 4: does it need an end from elsewhere? */
static bool is_loose(const struct symset_symbol *sym)
{
	return sym->kind == SYMSET_FUNC_ANY || sym->kind == SYMSET_LABEL;
}

/* The last symbol before the edge ends there. */
static void end_at_edge(struct symset *s, uint64_t edge)
{
	size_t lo = 0, hi = s->count;
	struct symset_symbol *sym;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->symbols[mid].addr < edge)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return;
	sym = &s->symbols[lo - 1];
	if (is_loose(sym) && (!sym->size || sym->size > edge - sym->addr))
		sym->size = edge - sym->addr;
}

static void end_at_edges(struct symset *s, const uint64_t *edges, size_t n)
{
	size_t loose = 0;

	for (size_t i = 0; i < s->count; i++)
		loose += is_loose(&s->symbols[i]);
	for (size_t i = 0; loose && i < n; i++)
		end_at_edge(s, edges[i]);
}

/* Rule 4: gives symbols without a size an end; drops those inside a sized function. */
static void bound_unsized(struct symset *s)
{
	uint64_t covered = 0;
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct symset_symbol sym = s->symbols[i];
		const struct elf_range *r = code_at(s, sym.addr);
		uint64_t limit = r->end;

		if (i + 1 < s->count && s->symbols[i + 1].addr < limit)
			limit = s->symbols[i + 1].addr;
		if (sym.kind > SYMSET_FUNC && (sym.addr < covered || sym.kind == SYMSET_END))
			continue;
		if (sym.kind > SYMSET_FUNC && (!sym.size || sym.size > limit - sym.addr))
			sym.size = limit - sym.addr;
		if (!sym.size)
			continue;
		if (sym.kind <= SYMSET_FUNC && sym.addr + sym.size > covered)
			covered = sym.addr + sym.size;
		s->symbols[kept++] = sym;
	}
	s->count = kept;
}

/* ---- pieces ---- */

struct sweep {
	const struct symset *set;
	struct symset_piece *pieces;
	size_t count;
	uint32_t *open; /* symbols not ended yet, outermost first */
	size_t depth;
	uint64_t at; /* all before is done */
};

static uint64_t end_of(const struct sweep *w, uint32_t i)
{
	return w->set->symbols[i].addr + w->set->symbols[i].size;
}

/* The innermost open one holds everything up to `end`. */
static void sweep_emit(struct sweep *w, uint64_t end)
{
	uint32_t i = w->open[w->depth - 1];

	if (w->at >= end)
		return;
	w->pieces[w->count++] = (struct symset_piece){w->at, end, i};
	w->at = end;
}

static void sweep_to(struct sweep *w, uint64_t addr)
{
	while (w->depth) {
		uint64_t end = end_of(w, w->open[w->depth - 1]);

		if (end > addr) {
			sweep_emit(w, addr);
			return;
		}
		sweep_emit(w, end);
		w->depth--;
	}
}

int symset_resolve(struct symset *s, const uint64_t *edges, size_t edge_count,
		   struct symset_piece **out, size_t *count)
{
	cleanup_free struct symset_piece *pieces = NULL;
	cleanup_free uint32_t *open = NULL;
	struct sweep w = {.set = s};
	int rc = sort_by_address(s);

	if (rc)
		return rc;
	choose_one_each(s);
	end_at_edges(s, edges, edge_count);
	bound_unsized(s);
	/* each symbol opens one piece and may cut one other in two */
	pieces = malloc((2 * s->count + 1) * sizeof(*pieces));
	open = malloc((s->count + 1) * sizeof(*open));
	if (!pieces || !open)
		return -ENOMEM;
	w.pieces = pieces;
	w.open = open;
	for (size_t i = 0; i < s->count; i++) {
		sweep_to(&w, s->symbols[i].addr);
		w.at = s->symbols[i].addr;
		w.open[w.depth++] = (uint32_t)i;
	}
	sweep_to(&w, UINT64_MAX);
	*count = w.count;
	*out = take_ptr(pieces);
	return 0;
}
