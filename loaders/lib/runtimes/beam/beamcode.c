/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/beam/beamcode.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/beam/beamname.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define DATA_MAX      (8ull << 20)
#define MODULES_MAX   (1u << 20)
#define FUNCTIONS_MAX (1u << 20)
#define TABLES        3
#define TABLE_WORDS   4
#define TABLE_WORD    8 /* of the table of atoms: where its segments may be */
#define TABLE_WORD_N  24
#define SEGMENT       1024u
#define ATOM_TAG      0x0bu
#define ATOM_TAG_MASK 0x3fu
#define ATOM_BYTES    1023u
#define ATOMS_PROVE   8 /* numbers that must be right */
#define BOXED         2u
#define LIST          1u
#define NIL           0x3bu
#define SMALL         0xfu
#define SMALL_MASK    0xfu
#define MODULE_FIRST  11 /* word of a module's header */
#define MODULE_LAST   24
#define MODULE_LINES  9
#define TABLE_GAP     256 /* between the addresses of functions and the first one */
#define RECORD_MFA    16
#define FILE_OF(x)    ((x) >> 24)
#define LINE_OF(x)    ((x)&0xffffff)

static bool word(const struct beamcode *c, uint64_t addr, uint64_t *value)
{
	return runtime_word(c->m, addr, value);
}

/* ---- atoms ---- */

static bool atom_find(const struct beamcode *c, uint64_t number, uint64_t *atom)
{
	uint64_t segment = 0;
	uint32_t same = 0;

	return word(c, c->segments + number / SEGMENT * 8, &segment) &&
	       word(c, segment + number % SEGMENT * 8, atom) && *atom && !(*atom & 7) &&
	       c->m->read(c->m->ctx, *atom + c->atom_slot, &same, sizeof(same)) && same == number;
}

/* NULL: no atom. */
static char *atom_read(const struct beamcode *c, uint64_t term)
{
	cleanup_free char *text = NULL;
	uint64_t atom = 0, at = 0;
	uint16_t size = 0;

	if ((term & ATOM_TAG_MASK) != ATOM_TAG || term >> 32 || !atom_find(c, term >> 6, &atom) ||
	    !c->m->read(c->m->ctx, atom + c->atom_size, &size, sizeof(size)) || size > ATOM_BYTES ||
	    !word(c, atom + c->atom_text, &at))
		return NULL;
	if (c->atom_binary)
		at = (at & 3) == BOXED ? (at & ~3ull) + 16 : 0;
	text = mem_alloc((size_t)size + 1);
	if (size && (!at || !c->m->read(c->m->ctx, at, text, size)))
		return NULL;
	text[size] = 0;
	return strlen(text) == size ? take_ptr(text) : NULL;
}

static bool atom_is(const struct beamcode *c, uint64_t number, const char *want)
{
	cleanup_free char *text = atom_read(c, number << 6 | ATOM_TAG);

	return text && !strcmp(text, want);
}

static bool numbers_are_right(const struct beamcode *c)
{
	uint64_t atom;

	for (uint64_t i = 0; i < ATOMS_PROVE; i++)
		if (!atom_find(c, i, &atom))
			return false;
	return true;
}

static bool texts_are_right(struct beamcode *c)
{
	for (unsigned binary = 0; binary < 2; binary++)
		for (uint32_t text = c->atom_size + 4; text <= c->atom_size + 16; text += 4) {
			c->atom_binary = binary;
			c->atom_text = text & ~7u;
			if (atom_is(c, 0, "false") && atom_is(c, 1, "true"))
				return true;
		}
	return false;
}

static bool atoms_find(struct beamcode *c)
{
	for (uint64_t i = TABLE_WORD; i < TABLE_WORD_N; i++) {
		if (!word(c, c->l.atoms + c->bias + 8 * i, &c->segments) || !c->segments ||
		    c->segments & 7)
			continue;
		for (c->atom_slot = 8; c->atom_slot <= 24; c->atom_slot += 4) {
			if (!numbers_are_right(c))
				continue;
			for (c->atom_size = c->atom_slot + 4; c->atom_size <= c->atom_slot + 8;
			     c->atom_size += 4)
				if (texts_are_right(c))
					return true;
		}
	}
	return false;
}

/* ---- ranges ---- */

/* Of one table's four words. */
static bool is_table(const uint64_t *w)
{
	uint64_t modules = w[0], n = w[1], room = w[2], last = w[3];

	return modules > 1 << 16 && !(modules & 7) && n && n <= room && room <= MODULES_MAX &&
	       last >= modules && last - modules < 16 * n && !((last - modules) & 15);
}

/* Its first modules are in order. */
static bool is_ordered(const struct beamcode *c, const uint64_t *w)
{
	uint64_t at[2], before = 0;

	for (uint64_t i = 0; i < w[1] && i < 8; i++) {
		if (!c->m->read(c->m->ctx, w[0] + 16 * i, at, sizeof(at)) || at[0] < before ||
		    at[1] < at[0] || at[0] & 7)
			return false;
		before = at[1];
	}
	return true;
}

static bool ranges_find(struct beamcode *c)
{
	uint64_t size = c->l.data_end - c->l.data, found = 0;
	cleanup_free uint64_t *w = NULL;
	size_t n;

	if (c->l.data_end < c->l.data || size > DATA_MAX)
		return false;
	w = mem_alloc((size_t)size + 8);
	n = (size_t)size / 8;
	if (!c->m->read(c->m->ctx, (c->l.data + c->bias + 7) & ~7ull, w, 8 * (n ? n - 1 : 0)))
		return false;
	for (size_t i = 0; i + TABLES * TABLE_WORDS < n; i++) {
		bool all = true;

		for (size_t t = 0; t < TABLES && all; t++)
			all = is_table(w + i + t * TABLE_WORDS) &&
			      is_ordered(c, w + i + t * TABLE_WORDS);
		if (all && found)
			return false;
		if (all)
			found = ((c->l.data + c->bias + 7) & ~7ull) + 8 * i;
	}
	c->ranges = found;
	return found;
}

bool beamcode_find(struct beamcode *c)
{
	return ranges_find(c) && atoms_find(c);
}

/* The table that counts now. */
static bool table_read(const struct beamcode *c, uint64_t w[TABLE_WORDS])
{
	uint32_t active = 0;

	return c->m->read(c->m->ctx, c->l.active + c->bias, &active, sizeof(active)) &&
	       active < TABLES &&
	       c->m->read(c->m->ctx, c->ranges + active * TABLE_WORDS * 8ull, w,
			  TABLE_WORDS * sizeof(*w)) &&
	       is_table(w);
}

bool beamcode_is_near(const struct beamcode *c, uint64_t pc, uint64_t span)
{
	uint64_t w[TABLE_WORDS], first = 0, end = 0;

	return table_read(c, w) && word(c, w[0], &first) &&
	       word(c, w[0] + 16 * (w[1] - 1) + 8, &end) && pc < end &&
	       (pc >= first || first - pc < span);
}

/* Of `n` ranges in order, one each `step` bytes and each two words, the one that pc lies in. */
static bool range_find(const struct beamcode *c, uint64_t table, uint64_t step, uint64_t n,
		       uint64_t pc, uint64_t *index, uint64_t at[2])
{
	for (uint64_t lo = 0, hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!c->m->read(c->m->ctx, table + step * mid, at, 2 * sizeof(*at)))
			return false;
		if (pc < at[0]) {
			hi = mid;
		} else if (pc >= at[1]) {
			lo = mid + 1;
		} else {
			*index = mid;
			return true;
		}
	}
	return false;
}

bool beamcode_module(const struct beamcode *c, uint64_t pc, struct beam_module *out)
{
	uint64_t w[TABLE_WORDS], at[2], index;

	if (!table_read(c, w) || !range_find(c, w[0], 16, w[1], pc, &index, at))
		return false;
	*out = (struct beam_module){at[0], at[1]};
	return true;
}

/* ---- functions ---- */

/* Where the addresses of a module's functions begin; 0: not found. */
static uint64_t functions_find(const struct beamcode *c, const struct beam_module *m, uint64_t n)
{
	uint64_t first = 0, end = 0;

	for (uint64_t i = MODULE_FIRST; i <= MODULE_LAST; i++) {
		uint64_t at = m->start + 8 * i, after = at + 8 * (n + 1);

		if (after < m->end && word(c, at, &first) && word(c, at + 8 * n, &end) &&
		    first >= after && first - after < TABLE_GAP && end > first && end <= m->end)
			return at;
	}
	return 0;
}

/* The function of which pc is a part: its number. */
static bool function_find(const struct beamcode *c, uint64_t functions, uint64_t n, uint64_t pc,
			  uint64_t *index, uint64_t *record)
{
	uint64_t at[2];

	if (!range_find(c, functions, 8, n, pc, index, at))
		return false;
	*record = at[0];
	return true;
}

/* ---- lines ---- */

struct lines {
	uint64_t files, places, first, from, to;
	uint32_t size;
};

static bool lines_read(const struct beamcode *c, const struct beam_module *m, uint64_t index,
		       struct lines *out)
{
	struct lines l = {0};
	uint64_t at = 0;

	if (!word(c, m->start + 8 * MODULE_LINES, &at) || at < m->start || at >= m->end ||
	    !word(c, at, &l.files) || !c->m->read(c->m->ctx, at + 8, &l.size, sizeof(l.size)) ||
	    (l.size != 2 && l.size != 4) || !word(c, at + 16, &l.places) ||
	    !word(c, at + 24, &l.first) || !word(c, at + 24 + 8 * index, &l.from) ||
	    !word(c, at + 32 + 8 * index, &l.to) || l.first < m->start || l.from < l.first ||
	    l.to < l.from || l.to >= m->end || (l.from - l.first) & 7 || (l.to - l.from) & 7)
		return false;
	*out = l;
	return true;
}

/* The place of the instruction at pc; 0: it has none. */
static uint32_t place_find(const struct beamcode *c, const struct lines *l, uint64_t pc)
{
	uint64_t at[2], lo = 0, hi = (l->to - l->from) / 8;
	uint32_t place = 0;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2, i = (l->from - l->first) / 8 + mid;

		if (!c->m->read(c->m->ctx, l->from + 8 * mid, at, sizeof(at)))
			return 0;
		if (pc < at[0])
			hi = mid;
		else if (pc >= at[1])
			lo = mid + 1;
		else
			return c->m->read(c->m->ctx, l->places + i * l->size, &place, l->size) ?
				       place :
				       0;
	}
	return 0;
}

/* A list of characters; NULL: something else. Only of ASCII: others are left out. */
static char *list_read(const struct beamcode *c, uint64_t term)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	uint64_t cell[2];

	while (term != NIL) {
		if ((term & 3) != LIST || s.len >= SCRIPT_TEXT_MAX ||
		    !c->m->read(c->m->ctx, term & ~3ull, cell, sizeof(cell)) ||
		    (cell[0] & SMALL_MASK) != SMALL || cell[0] >> 4 < ' ' || cell[0] >> 4 > '~')
			return NULL;
		strbuf_addf(&s, "%c", (char)(cell[0] >> 4));
		term = cell[1];
	}
	return s.len ? strbuf_take(&s) : NULL;
}

/* A file's name is a list of characters, or an atom. */
static char *file_read(const struct beamcode *c, const struct lines *l, uint32_t place)
{
	uint64_t term = 0;

	if (!word(c, l->files + 8 * FILE_OF(place), &term))
		return NULL;
	return (term & 3) == LIST ? list_read(c, term) : atom_read(c, term);
}

static void line_add(const struct beamcode *c, const struct beam_module *m, uint64_t index,
		     uint64_t pc, struct script_place *out)
{
	uint32_t place = 0;
	struct lines l;

	if (lines_read(c, m, index, &l))
		place = place_find(c, &l, pc);
	out->file = LINE_OF(place) ? file_read(c, &l, place) : NULL;
	out->line = out->file ? LINE_OF(place) : 0;
}

bool beamcode_place(const struct beamcode *c, const struct beam_module *m, uint64_t pc,
		    bool returns, struct script_place *out)
{
	uint64_t n = 0, functions, index = 0, record = 0, mfa[3];
	cleanup_free char *module = NULL;
	cleanup_free char *function = NULL;

	pc -= returns;
	if (!word(c, m->start, &n) || !n || n > FUNCTIONS_MAX)
		return false;
	functions = functions_find(c, m, n);
	if (!functions || !function_find(c, functions, n, pc, &index, &record) ||
	    record < m->start || record >= m->end ||
	    !c->m->read(c->m->ctx, record + RECORD_MFA, mfa, sizeof(mfa)) || mfa[2] > 255)
		return false;
	module = atom_read(c, mfa[0]);
	function = atom_read(c, mfa[1]);
	if (!module || !function)
		return false;
	*out = (struct script_place){.function = beamname_make(module, function, (uint32_t)mfa[2])};
	if (out->function)
		line_add(c, m, index, pc, out);
	return out->function;
}
