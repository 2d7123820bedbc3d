/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

/* ---- taking ---- */

int rows_init(struct rows *r, uint64_t base, uint64_t end)
{
	if (end < base || end - base > ROWS_SIZE_MAX)
		return -EFBIG;
	*r = (struct rows){.base = base, .end = end};
	return 0;
}

void rows_release(struct rows *r)
{
	free(take_ptr(r->rows));
	free(take_ptr(r->spans));
	free(take_ptr(r->rules));
	free(take_ptr(r->exts));
	free(take_ptr(r->starts));
	idmap_release(&r->rule_numbers);
	idmap_release(&r->ext_numbers);
	r->count = r->cap = r->span_count = r->span_cap = r->ext_count = r->ext_cap =
		r->rule_count = r->rule_cap = 0;
	r->start_count = r->start_cap = 0;
}

/* Room for one more element of `size` bytes, up to `max` elements. */
static int grow(struct rows *r, void *items, size_t count, size_t *cap, size_t size, size_t max)
{
	void **p = items;
	void *bigger;
	size_t want = *cap ? *cap * 2 : 256;

	if (r->failed)
		return r->failed;
	if (count < *cap)
		return 0;
	if (count >= max)
		return r->failed = -EFBIG;
	bigger = realloc(*p, want * size);
	if (!bigger)
		return r->failed = -ENOMEM;
	*p = bigger;
	*cap = want;
	return 0;
}

void rows_reserve(struct rows *r, uint64_t lo, uint64_t hi)
{
	r->reserved_lo = lo;
	r->reserved_hi = hi;
}

void rows_span(struct rows *r, uint64_t start, uint64_t end, enum rows_source source)
{
	r->open = false;
	if (start < r->base || start >= end || end > r->end ||
	    grow(r, &r->spans, r->span_count, &r->span_cap, sizeof(*r->spans), ROWS_MAX))
		return;
	r->spans[r->span_count++] = (struct rows_span){.lo = (uint32_t)(start - r->base),
						       .hi = (uint32_t)(end - r->base),
						       .first = (uint32_t)r->count,
						       .source = source};
	r->open = true;
}

static uint32_t row_addr(uint64_t row)
{
	return (uint32_t)(row >> 32);
}

static uint32_t row_number(uint64_t row)
{
	return (uint32_t)row;
}

static int rule_append(struct rows *r, uint64_t rule)
{
	int rc = grow(r, &r->rules, r->rule_count, &r->rule_cap, sizeof(*r->rules),
		      TABLES_RULES_MAX);

	if (rc)
		return rc;
	idmap_set(&r->rule_numbers, rule, r->rule_count);
	r->rules[r->rule_count++] = rule;
	return 0;
}

/* Those of enum rows_number, in its order. */
static int rules_begin(struct rows *r)
{
	static const uint64_t fixed[ROWS_FIXED] = {
		ROW_MAKE_SPECIAL(ROW_NONE, 0), ROW_MAKE_SPECIAL(ROW_ROOT, 0),
		ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RANGE)};
	int rc = 0;

	for (size_t i = 0; i < ROWS_FIXED && !rc && r->rule_count < ROWS_FIXED; i++)
		rc = rule_append(r, fixed[i]);
	return rc;
}

static uint32_t rule_number(struct rows *r, uint64_t rule)
{
	uint64_t number = ROWS_NONE;

	if (rules_begin(r))
		return ROWS_NONE;
	if (rule == r->last_rule)
		return r->last_number;
	if (!idmap_get(&r->rule_numbers, rule, &number)) {
		number = r->rule_count < TABLES_RULES_MAX ? r->rule_count : ROWS_RANGE;
		if (number != ROWS_RANGE && rule_append(r, rule))
			return ROWS_NONE;
	}
	r->last_rule = rule;
	r->last_number = (uint32_t)number;
	return r->last_number;
}

void rows_add(struct rows *r, uint64_t addr, uint64_t rule)
{
	struct rows_span *s = r->span_count ? &r->spans[r->span_count - 1] : NULL;
	uint32_t at = (uint32_t)(addr - r->base);
	uint64_t row;

	if (!r->open || addr < r->base || addr >= r->end || at < s->lo || at >= s->hi)
		return;
	row = (uint64_t)at << 32 | rule_number(r, rule);
	if (s->count && row_addr(r->rows[r->count - 1]) >= at) {
		if (row_addr(r->rows[r->count - 1]) == at)
			r->rows[r->count - 1] = row;
		return;
	}
	if (s->count && row_number(r->rows[r->count - 1]) == row_number(row))
		return;
	if (grow(r, &r->rows, r->count, &r->cap, sizeof(*r->rows), ROWS_MAX))
		return;
	r->rows[r->count++] = row;
	s->count++;
	r->signals += rule == ROW_MAKE_SPECIAL(ROW_SIGNAL, 0);
}

uint32_t rows_ext(struct rows *r, const struct row_ext *x)
{
	uint64_t key = hash_bytes(HASH_SEED, x, sizeof(*x)), number;

	if (idmap_get(&r->ext_numbers, key, &number) && !memcmp(&r->exts[number], x, sizeof(*x)))
		return ROW_MAKE_EXT((uint32_t)number);
	if (r->ext_count >= ROWS_EXT_MAX ||
	    grow(r, &r->exts, r->ext_count, &r->ext_cap, sizeof(*r->exts), ROWS_EXT_MAX))
		return ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RANGE);
	idmap_set(&r->ext_numbers, key, r->ext_count);
	r->exts[r->ext_count] = *x;
	return ROW_MAKE_EXT((uint32_t)r->ext_count++);
}

/* ---- edges ---- */

void rows_start(struct rows *r, uint64_t addr)
{
	if (!grow(r, &r->starts, r->start_count, &r->start_cap, sizeof(*r->starts), ROWS_MAX))
		r->starts[r->start_count++] = addr;
}

int rows_edges(const struct rows *r, uint64_t **out, size_t *count)
{
	uint64_t *v = malloc((2 * r->span_count + r->start_count + 1) * sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < r->span_count; i++) {
		if (r->spans[i].source == ROWS_FOLLOWED)
			continue;
		v[n++] = r->base + r->spans[i].lo;
		v[n++] = r->base + r->spans[i].hi;
	}
	for (size_t i = 0; i < r->start_count; i++)
		v[n++] = r->starts[i];
	*out = v;
	*count = n;
	return 0;
}

/* ---- which span holds where ---- */

/* A piece of a span that is in force. */
struct piece {
	uint32_t lo, hi;
	uint32_t first, count; /* the span's rows */
};

struct pieces {
	struct piece *v; /* own */
	size_t n;
};

static void pieces_release(struct pieces *p)
{
	free(p->v);
}
#define cleanup_pieces __attribute__((cleanup(pieces_release)))

/* Stable, by lo; not qsort (the sandbox forbids what glibc's asks). Linkers write nearly sorted
 * tables: runs that are in order already cost one comparison each. */
static void merge_sort(struct piece *v, struct piece *tmp, size_t n)
{
	size_t half = n / 2, a = 0, b = half, k = 0;

	if (n < 2)
		return;
	merge_sort(v, tmp, half);
	merge_sort(v + half, tmp, n - half);
	if (v[half - 1].lo <= v[half].lo)
		return;
	memcpy(tmp, v, half * sizeof(*v));
	while (a < half && b < n)
		v[k++] = v[b].lo < tmp[a].lo ? v[b++] : tmp[a++];
	memcpy(v + k, tmp + a, (half - a) * sizeof(*v));
}

/* Each ends where the next begins; of several at one address the first stays. */
static void pieces_disjoin(struct pieces *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (kept && p->v[kept - 1].lo == p->v[i].lo)
			continue;
		if (kept && p->v[kept - 1].hi > p->v[i].lo)
			p->v[kept - 1].hi = p->v[i].lo;
		p->v[kept++] = p->v[i];
	}
	p->n = kept;
}

static bool in_reserve(const struct rows *r, const struct rows_span *s)
{
	return s->source != ROWS_SURE && r->base + s->lo < r->reserved_hi &&
	       r->base + s->hi > r->reserved_lo;
}

/* The spans of one source, sorted, none overlapping. */
static int pieces_of_source(const struct rows *r, uint32_t source, struct pieces *out)
{
	cleanup_pieces struct pieces p = {.v = malloc((r->span_count + 1) * sizeof(*p.v))};
	cleanup_free struct piece *tmp = malloc((r->span_count + 1) * sizeof(*tmp));

	if (!p.v || !tmp)
		return -ENOMEM;
	for (size_t i = 0; i < r->span_count; i++) {
		const struct rows_span *s = &r->spans[i];

		if (s->source == source && s->count && !in_reserve(r, s))
			p.v[p.n++] = (struct piece){row_addr(r->rows[s->first]), s->hi, s->first,
						    s->count};
	}
	merge_sort(p.v, tmp, p.n);
	pieces_disjoin(&p);
	*out = (struct pieces){take_ptr(p.v), p.n};
	return 0;
}

/* All of `a`, and what of `b` lies between. */
static int pieces_overlay(struct pieces *a, const struct pieces *b)
{
	/* each piece of `a` may cut one of `b` in two */
	struct piece *v = malloc((2 * a->n + b->n + 1) * sizeof(*v));
	size_t i = 0, n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t k = 0; k < b->n; k++) {
		struct piece left = b->v[k];

		while (i < a->n && a->v[i].lo <= left.lo)
			v[n++] = a->v[i++];
		if (n && v[n - 1].hi > left.lo)
			left.lo = v[n - 1].hi;
		while (left.lo < left.hi && i < a->n && a->v[i].lo < left.hi) {
			if (left.lo < a->v[i].lo)
				v[n++] =
					(struct piece){left.lo, a->v[i].lo, left.first, left.count};
			left.lo = a->v[i].hi;
			v[n++] = a->v[i++];
		}
		if (left.lo < left.hi)
			v[n++] = left;
	}
	while (i < a->n)
		v[n++] = a->v[i++];
	free(a->v);
	*a = (struct pieces){v, n};
	return 0;
}

static int pieces_resolve(const struct rows *r, struct pieces *out)
{
	cleanup_pieces struct pieces all = {0};

	for (uint32_t source = 0; source < ROWS_SOURCES; source++) {
		cleanup_pieces struct pieces p = {0};
		int rc = pieces_of_source(r, source, &p);

		if (!rc)
			rc = pieces_overlay(&all, &p);
		if (rc)
			return rc;
	}
	*out = (struct pieces){take_ptr(all.v), all.n};
	return 0;
}

/* ---- writing ---- */

struct output {
	uint64_t *rows; /* own */
	size_t n;
};

/* Drops what says the same as the row before. There is room: see rows_flatten. */
static void output_row(struct output *o, uint32_t addr, uint32_t number)
{
	if (o->n && row_number(o->rows[o->n - 1]) == number)
		return;
	o->rows[o->n++] = (uint64_t)addr << 32 | number;
}

static void output_piece(const struct rows *r, struct output *o, const struct piece *p)
{
	const uint64_t *v = r->rows + p->first;
	size_t lo = 0, hi = p->count;

	/* the last row at or before the piece's start; a piece never starts before its span's first
	 * row */
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (row_addr(v[mid]) <= p->lo)
			lo = mid;
		else
			hi = mid;
	}
	output_row(o, p->lo, row_number(v[lo]));
	for (size_t i = lo + 1; i < p->count && row_addr(v[i]) < p->hi; i++)
		output_row(o, row_addr(v[i]), row_number(v[i]));
}

/* A function that is the outermost frame from its first byte on is returned into there
 * (makecontext's __start_context): looked up one byte before. */
static void piece_widen(const struct rows *r, struct piece *p, uint32_t before)
{
	if (before < p->lo && r->rows[p->first] == ((uint64_t)p->lo << 32 | ROWS_ROOT))
		p->lo--;
}

static int rows_flatten(const struct rows *r, struct output *o)
{
	cleanup_pieces struct pieces p = {0};
	int rc = pieces_resolve(r, &p);

	if (rc)
		return rc;
	/* each row at most once, and for each piece its start and a gap after it */
	o->rows = malloc((r->count + 2 * p.n + 1) * sizeof(*o->rows));
	if (!o->rows)
		return -ENOMEM;
	for (size_t i = 0; i < p.n; i++) {
		piece_widen(r, &p.v[i], i ? p.v[i - 1].hi : 0);
		output_piece(r, o, &p.v[i]);
		if (i + 1 == p.n || p.v[i + 1].lo - p.v[i].hi > ROWS_PADDING)
			output_row(o, p.v[i].hi, ROWS_NONE);
	}
	return 0;
}

static uint32_t count_unsupported(const struct rows *r, const struct output *o)
{
	uint32_t n = 0;

	for (size_t i = 0; i < o->n; i++) {
		const uint64_t rule = r->rules[row_number(o->rows[i])];

		n += ROW_RULE_KIND(rule) == ROW_SPECIAL &&
		     ROW_RULE_SPECIAL(rule) == ROW_UNSUPPORTED;
	}
	return n;
}

/* The rows as the format has them: those at a page's first byte are in the page. Returns how many
 * are left. */
static uint32_t pages_fill(uint64_t *pages, size_t page_count, uint32_t *rows,
			   const struct output *o)
{
	uint32_t number = ROWS_NONE, n = 0;
	size_t i = 0;

	for (size_t k = 0; k < page_count; k++) {
		const uint64_t from = (uint64_t)k << TABLES_PAGE_SHIFT,
			       to = from + (1u << TABLES_PAGE_SHIFT);
		const uint32_t first = n;

		if (i < o->n && row_addr(o->rows[i]) == from)
			number = row_number(o->rows[i++]);
		pages[k] = ROW_PAGE(number, 0, first);
		for (; i < o->n && row_addr(o->rows[i]) < to; i++) {
			number = row_number(o->rows[i]);
			rows[n++] = ROW_MAKE(row_addr(o->rows[i]) - from, number);
		}
		pages[k] |= ROW_PAGE(0, n - first, 0);
	}
	return n;
}

static int rows_lay_out(const struct rows *r, const struct output *o, void **out, size_t *size)
{
	struct unwind_head h = {.text_base = r->base,
				.version = TABLES_VERSION,
				.rule_count = (uint32_t)r->rule_count,
				.ext_count = (uint32_t)r->ext_count,
				.unsupported = count_unsupported(r, o),
				.flags = r->flags};
	size_t exts = r->ext_count * sizeof(*r->exts), rules = r->rule_count * sizeof(*r->rules),
	       pages;
	uint8_t *buf;

	h.page_count = (row_addr(o->rows[o->n - 1]) >> TABLES_PAGE_SHIFT) + 1;
	pages = (size_t)h.page_count * sizeof(uint64_t);
	buf = calloc(1, sizeof(h) + pages + rules + exts + (o->n + 1) / 2 * sizeof(uint64_t));
	if (!buf)
		return -ENOMEM;
	h.row_count = pages_fill((uint64_t *)(buf + sizeof(h)), h.page_count,
				 (uint32_t *)(buf + sizeof(h) + pages + rules + exts), o);
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h) + pages, r->rules, rules);
	if (exts)
		memcpy(buf + sizeof(h) + pages + rules, r->exts, exts);
	*out = buf;
	*size = sizeof(h) + pages + rules + exts + ((size_t)h.row_count + 1) / 2 * sizeof(uint64_t);
	return 0;
}

int rows_finish(struct rows *r, void **out, size_t *size)
{
	struct output o = {0};
	int rc = r->failed;

	if (!rc)
		rc = rows_flatten(r, &o);
	if (!rc && o.n) {
		rc = rows_lay_out(r, &o, out, size);
	} else if (!rc) {
		*out = NULL;
		*size = 0;
	}
	free(o.rows);
	return rc;
}
