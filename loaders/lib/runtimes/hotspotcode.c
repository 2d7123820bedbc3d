/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/hotspotcode.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define TABLE_MAX    (4u << 20) /* bytes of one table */
#define LINES_MAX    65536u
#define UTF8         1 /* JVM_CONSTANT_Utf8 */
#define POOL_LENGTHS 65536
#define SCOPE_BYTES  16 /* three numbers */
#define VOTES        3  /* methods that must agree on how numbers are packed */

static bool word(const struct hotspotcode *c, uint64_t addr, uint64_t *value)
{
	return runtime_word(c->m, addr, value);
}

static bool small(const struct hotspotcode *c, uint64_t addr, size_t size, uint32_t *value)
{
	uint32_t got = 0;

	if (!c->m->read(c->m->ctx, addr, &got, size))
		return false;
	*value = got;
	return true;
}

bool hotspotcode_member(const struct hotspotcode *c, uint64_t base, enum hotspot_number which,
			size_t usual, uint32_t *value)
{
	uint64_t got = 0;
	size_t size = c->width[which] ? c->width[which] : usual;

	if (!c->m->read(c->m->ctx, base + c->n[which], &got, size) || got > UINT32_MAX)
		return false;
	*value = (uint32_t)got;
	return true;
}

/* ---- tables ---- */

bool hotspot_number_read(const uint8_t *bytes, size_t len, size_t *at, unsigned x, uint32_t *value)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 5; i++) {
		uint8_t b;

		if (*at >= len || bytes[*at] < x)
			return false;
		b = (uint8_t)(bytes[(*at)++] - x);
		sum += (uint32_t)b << 6 * i;
		if (b < 192 - x)
			break;
	}
	*value = sum;
	return true;
}

static bool signed_read(const uint8_t *bytes, size_t len, size_t *at, unsigned x, int32_t *value)
{
	uint32_t v = 0;

	if (!hotspot_number_read(bytes, len, at, x, &v))
		return false;
	*value = (int32_t)(v >> 1 ^ (0 - (v & 1)));
	return true;
}

/* The next row of a line table, from *at on. 0: its end, or -1: cut off. */
static int line_step(const uint8_t *table, size_t len, unsigned x, size_t *at, uint32_t *bci,
		     uint32_t *line)
{
	uint8_t next;
	int32_t bcis, lines;

	if (*at >= len)
		return -1;
	if (!table[*at])
		return 0;
	next = table[(*at)++];
	bcis = next >> 3;
	lines = next & 7;
	if (next == 0xff &&
	    (!signed_read(table, len, at, x, &bcis) || !signed_read(table, len, at, x, &lines)))
		return -1;
	*bci += (uint32_t)bcis;
	*line += (uint32_t)lines;
	return 1;
}

uint32_t hotspot_line_find(const uint8_t *table, size_t len, unsigned x, uint32_t bci)
{
	uint32_t at_bci = 0, line = 0, best = 0, best_bci = 0;

	for (size_t at = 0; line_step(table, len, x, &at, &at_bci, &line) > 0;) {
		if (at_bci == bci)
			return line <= INT32_MAX ? line : 0;
		if (at_bci < bci && at_bci >= best_bci) {
			best = line;
			best_bci = at_bci;
		}
	}
	return best <= INT32_MAX ? best : 0;
}

bool hotspot_lines_fit(const uint8_t *table, size_t len, unsigned x, uint32_t code_size)
{
	uint32_t bci = 0, line = 0;
	size_t at = 0;
	int more;

	while ((more = line_step(table, len, x, &at, &bci, &line)) > 0)
		if (bci >= code_size || !line || line > UINT16_MAX)
			return false;
	return !more && at;
}

/* ---- methods ---- */

static char *symbol_read(const struct hotspotcode *c, uint64_t symbol)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint32_t length = 0;
	size_t n;

	if (!symbol || symbol & 7 ||
	    !hotspotcode_member(c, symbol, HOTSPOT_SYMBOL_LENGTH, 2, &length) || !length)
		return NULL;
	n = length < SCRIPT_TEXT_MAX ? length : SCRIPT_TEXT_MAX;
	if (!c->m->read(c->m->ctx, symbol + c->n[HOTSPOT_SYMBOL_BODY], bytes, n) ||
	    memchr(bytes, 0, n))
		return NULL;
	memcpy(bytes + n, n < length ? "..." : "", n < length ? 4 : 1);
	return mem_strdup(bytes);
}

/* A text of a constant pool. */
static char *pool_text(const struct hotspotcode *c, uint64_t pool, uint32_t i)
{
	uint64_t tags = 0, symbol = 0;
	uint32_t length = 0, tag = 0;

	if (!i || !hotspotcode_member(c, pool, HOTSPOT_POOL_LENGTH, 4, &length) || i >= length ||
	    length > POOL_LENGTHS || !word(c, pool + c->n[HOTSPOT_POOL_TAGS], &tags) ||
	    !small(c, tags + c->n[HOTSPOT_BYTES_DATA] + i, 1, &tag) || tag != UTF8 ||
	    !word(c, pool + c->n[HOTSPOT_SIZE_POOL] + 8ull * i, &symbol))
		return NULL;
	return symbol_read(c, symbol);
}

struct method {
	uint64_t fixed, pool, class; /* its ConstMethod, constant pool, InstanceKlass */
	uint32_t code_size, name;
};

static bool method_open(const struct hotspotcode *c, uint64_t method, struct method *m)
{
	return method && !(method & 7) && word(c, method + c->n[HOTSPOT_METHOD_CONST], &m->fixed) &&
	       m->fixed && !(m->fixed & 7) &&
	       word(c, m->fixed + c->n[HOTSPOT_CONST_POOL], &m->pool) && m->pool &&
	       !(m->pool & 7) && word(c, m->pool + c->n[HOTSPOT_POOL_HOLDER], &m->class) &&
	       m->class && !(m->class & 7) &&
	       hotspotcode_member(c, m->fixed, HOTSPOT_CONST_CODE_SIZE, 2, &m->code_size) &&
	       hotspotcode_member(c, m->fixed, HOTSPOT_CONST_NAME, 2, &m->name);
}

/* One that can be read one way only says which way is this JVM's. */
static void vote(struct hotspot_packing *p, bool by_0, bool by_1)
{
	if (by_0 == by_1 || ++p->votes[by_1] < VOTES)
		return;
	p->x = by_1;
	p->proved = true;
}

/* How this line table is packed; -1: not known. */
static int packing_of(const struct hotspotcode *c, const uint8_t *table, size_t len,
		      uint32_t code_size)
{
	struct hotspot_packing *p = c->packing;
	bool by_0, by_1;

	if (p->proved)
		return (int)p->x;
	by_0 = hotspot_lines_fit(table, len, 0, code_size);
	by_1 = hotspot_lines_fit(table, len, 1, code_size);
	vote(p, by_0, by_1);
	return by_0 == by_1 ? -1 : by_1;
}

static uint32_t line_read(const struct hotspotcode *c, const struct method *m, int64_t bci)
{
	uint8_t table[4096];
	uint32_t flags = 0;
	uint64_t at = m->fixed + c->n[HOTSPOT_SIZE_CONST] + m->code_size;
	size_t n = sizeof(table);
	int x;

	if (bci < 0 || bci >= m->code_size || !c->has[HOTSPOT_CONST_FLAGS] ||
	    !c->has[HOTSPOT_HAS_LINES] ||
	    !hotspotcode_member(c, m->fixed, HOTSPOT_CONST_FLAGS, 2, &flags) ||
	    !(flags & c->n[HOTSPOT_HAS_LINES]))
		return 0;
	/* its length is not said; the structure around it may end a page of memory */
	while (n >= 64 && !c->m->read(c->m->ctx, at, table, n))
		n /= 2;
	x = n >= 64 ? packing_of(c, table, n, m->code_size) : -1;
	return x >= 0 ? hotspot_line_find(table, n, (unsigned)x, (uint32_t)bci) : 0;
}

static char *file_read(const struct hotspotcode *c, const struct method *m)
{
	uint32_t i = 0;

	if (c->has[HOTSPOT_POOL_SOURCE])
		return hotspotcode_member(c, m->pool, HOTSPOT_POOL_SOURCE, 2, &i) ?
			       pool_text(c, m->pool, i) :
			       NULL;
	return c->has[HOTSPOT_CLASS_SOURCE] &&
			       hotspotcode_member(c, m->class, HOTSPOT_CLASS_SOURCE, 2, &i) ?
		       pool_text(c, m->pool, i) :
		       NULL;
}

/* "java/lang/Thread" -> "java.lang.Thread"; a hidden class's number, "A$$Lambda+0x7f..", as Java
 * itself writes it, "A$$Lambda/0x7f..". */
static void class_write(char *name)
{
	char *plus = strstr(name, "+0x");

	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '.';
	if (plus)
		*plus = '/';
}

bool hotspotcode_method(const struct hotspotcode *c, uint64_t method, int64_t bci,
			struct script_place *out)
{
	cleanup_free char *name = NULL;
	cleanup_free char *class = NULL;
	struct strbuf full = STRBUF_INIT;
	struct method m = {0};
	uint64_t symbol = 0;

	if (!method_open(c, method, &m) || !word(c, m.class + c->n[HOTSPOT_CLASS_NAME], &symbol))
		return false;
	name = pool_text(c, m.pool, m.name);
	class = symbol_read(c, symbol);
	if (!name || !class)
		return false;
	class_write(class);
	strbuf_addf(&full, "%s.%s", class, name);
	*out = (struct script_place){.function = strbuf_take(&full),
				     .file = file_read(c, &m),
				     .line = line_read(c, &m, bci)};
	return true;
}

int64_t hotspotcode_bci(const struct hotspotcode *c, uint64_t method, uint64_t bcp)
{
	struct method m = {0};
	uint64_t begin;

	if (!method_open(c, method, &m))
		return -1;
	begin = m.fixed + c->n[HOTSPOT_SIZE_CONST];
	return bcp >= begin && bcp - begin < m.code_size ? (int64_t)(bcp - begin) : -1;
}

bool hotspotcode_is_native(const struct hotspotcode *c, uint64_t method)
{
	struct method m = {0};

	return method_open(c, method, &m) && !m.code_size;
}

/* ---- compiled code ---- */

/* Where a compiled method's tables are. */
struct tables {
	uint64_t pcs, pcs_end, scopes, scopes_end, metadata, metadata_end;
};

/* Apart from the code. */
static bool tables_apart(const struct hotspotcode *c, const struct hotspot_blob *b, uint32_t pcs,
			 struct tables *t)
{
	uint32_t scopes = 0, metadata = 0, size = 0;
	uint64_t base = 0;

	if (!c->has[HOTSPOT_NM_SCOPES_OFFSET] || !c->has[HOTSPOT_NM_IMMUTABLE_SIZE] ||
	    !c->has[HOTSPOT_NM_MUTABLE] || !c->has[HOTSPOT_NM_RELOCATIONS] ||
	    !word(c, b->at + c->n[HOTSPOT_NM_IMMUTABLE], &base) ||
	    !hotspotcode_member(c, b->at, HOTSPOT_NM_SCOPES_OFFSET, 4, &scopes) ||
	    !hotspotcode_member(c, b->at, HOTSPOT_NM_IMMUTABLE_SIZE, 4, &size) ||
	    !word(c, b->at + c->n[HOTSPOT_NM_MUTABLE], &t->metadata) ||
	    !hotspotcode_member(c, b->at, HOTSPOT_NM_RELOCATIONS, 4, &metadata))
		return false;
	t->pcs = base + pcs;
	t->scopes = base + scopes;
	t->scopes_end = base + size;
	t->pcs_end = t->scopes;
	t->metadata += metadata;
	t->metadata_end = t->metadata + TABLE_MAX;
	return true;
}

/* Behind the code: metadata, scopes, places, dependencies. */
static bool tables_behind(const struct hotspotcode *c, const struct hotspot_blob *b, uint32_t pcs,
			  struct tables *t)
{
	uint32_t end = 0, scopes = 0, metadata = 0;

	if (!c->has[HOTSPOT_NM_PCS_END] || !c->has[HOTSPOT_NM_METADATA] ||
	    !hotspotcode_member(c, b->at, HOTSPOT_NM_PCS_END, 4, &end) ||
	    !hotspotcode_member(c, b->at, HOTSPOT_NM_METADATA, 4, &metadata))
		return false;
	if (c->has[HOTSPOT_NM_SCOPES]) {
		if (!word(c, b->at + c->n[HOTSPOT_NM_SCOPES], &t->scopes))
			return false;
	} else if (!c->has[HOTSPOT_NM_SCOPES_OFFSET] ||
		   !hotspotcode_member(c, b->at, HOTSPOT_NM_SCOPES_OFFSET, 4, &scopes)) {
		return false;
	} else {
		t->scopes = b->at + scopes;
	}
	t->pcs = b->at + pcs;
	t->metadata = b->at + metadata;
	t->metadata_end = t->scopes;
	t->scopes_end = t->pcs;
	t->pcs_end = b->at + end;
	return true;
}

static bool tables_find(const struct hotspotcode *c, const struct hotspot_blob *b, struct tables *t)
{
	uint32_t pcs = 0;

	return c->has[HOTSPOT_NM_PCS] && c->has[HOTSPOT_PC_OFFSET] && c->has[HOTSPOT_PC_SCOPE] &&
	       c->has[HOTSPOT_SIZE_PC] && hotspotcode_member(c, b->at, HOTSPOT_NM_PCS, 4, &pcs) &&
	       (c->has[HOTSPOT_NM_IMMUTABLE] ? tables_apart(c, b, pcs, t) :
					       tables_behind(c, b, pcs, t)) &&
	       t->pcs < t->pcs_end && t->pcs_end - t->pcs <= TABLE_MAX &&
	       t->scopes < t->scopes_end && t->scopes_end - t->scopes <= TABLE_MAX;
}

/* One description: a place in the code, and its scope. false: none, or nonsensical numbers. */
static bool pc_read(const struct hotspotcode *c, const struct tables *t, size_t i, int64_t *offset,
		    uint32_t *scope)
{
	const uint64_t stride = c->n[HOTSPOT_SIZE_PC], at = t->pcs + stride * i;
	uint32_t place = 0, found = 0;

	if (stride < 8 || stride > 64 || at + stride > t->pcs_end ||
	    !hotspotcode_member(c, at, HOTSPOT_PC_OFFSET, 4, &place) ||
	    !hotspotcode_member(c, at, HOTSPOT_PC_SCOPE, 4, &found))
		return false;
	*offset = (int32_t)place;
	*scope = (int32_t)found > 0 ? found : 0;
	return true;
}

/* The first description at `pc` or behind it: they are sorted. */
static size_t pc_find(const struct hotspotcode *c, const struct tables *t, uint64_t pc)
{
	size_t lo = 0, hi = c->n[HOTSPOT_SIZE_PC] ?
				    (size_t)((t->pcs_end - t->pcs) / c->n[HOTSPOT_SIZE_PC]) :
				    0;

	while (lo < hi) {
		size_t middle = (lo + hi) / 2;
		int64_t offset = 0;
		uint32_t scope;

		if (!pc_read(c, t, middle, &offset, &scope))
			return lo;
		if (offset < (int64_t)pc)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* The scope of the return address `pc`: an offset into the scopes. 0: none. */
static uint32_t scope_find(const struct hotspotcode *c, const struct tables *t, uint64_t pc)
{
	int64_t offset = -1;
	uint32_t scope = 0;

	return pc_read(c, t, pc_find(c, t, pc), &offset, &scope) && offset == (int64_t)pc ? scope :
											    0;
}

/* One scope, read the way of x. false: cut off, or not a method. *scope becomes the caller's. */
static bool scope_read(const struct hotspotcode *c, const struct tables *t, unsigned x,
		       uint32_t *scope, uint64_t *method, struct script_place *out)
{
	uint8_t bytes[SCOPE_BYTES];
	const uint64_t left = t->scopes_end - t->scopes, from = *scope;
	size_t len = left - from < sizeof(bytes) ? (size_t)(left - from) : sizeof(bytes), at = 0;
	uint32_t caller = 0, i = 0, bci = 0;

	if (from >= left || !c->m->read(c->m->ctx, t->scopes + from, bytes, len) ||
	    !hotspot_number_read(bytes, len, &at, x, &caller) ||
	    !hotspot_number_read(bytes, len, &at, x, &i) ||
	    !hotspot_number_read(bytes, len, &at, x, &bci) || !i ||
	    t->metadata + 8ull * i > t->metadata_end ||
	    !word(c, t->metadata + 8ull * (i - 1), method))
		return false;
	*scope = caller;
	return hotspotcode_method(c, *method, (int64_t)bci - 1, out);
}

/* All scopes of one place, innermost first; 0: they do not lead to the method `own`, which was
 * compiled. */
static size_t scopes_read(const struct hotspotcode *c, const struct tables *t, unsigned x,
			  uint32_t scope, uint64_t own, struct script_place places[])
{
	uint64_t method = 0;
	size_t n = 0;

	for (; scope && n < HOTSPOT_INLINE_MAX && scope_read(c, t, x, &scope, &method, &places[n]);
	     n++)
		;
	if (!n || scope || method != own) {
		while (n)
			script_place_release(&places[--n]);
		return 0;
	}
	return n;
}

/* Both ways, where it is not known yet which one it is; one place says something only if it can be
 * read one way. */
static size_t scopes_prove(const struct hotspotcode *c, const struct tables *t, uint32_t scope,
			   uint64_t own, struct script_place places[])
{
	struct script_place other[HOTSPOT_INLINE_MAX];
	size_t n = scopes_read(c, t, 1, scope, own, places);
	size_t m = scopes_read(c, t, 0, scope, own, other);
	bool both = n && m;

	vote(c->packing, m, n);
	for (size_t i = 0; i < m; i++) {
		if (both)
			script_place_release(&other[i]);
		else
			places[i] = other[i];
	}
	for (size_t i = 0; both && i < n; i++)
		script_place_release(&places[i]);
	return both ? 0 : n + m;
}

bool hotspotcode_scopes(const struct hotspotcode *c, const struct hotspot_blob *b, uint64_t pc,
			size_t at, struct script_stack *out)
{
	struct script_place places[HOTSPOT_INLINE_MAX];
	struct tables t = {0};
	uint64_t own = 0;
	uint32_t scope;
	size_t n;

	if (!word(c, b->at + c->n[HOTSPOT_NM_METHOD], &own) || !tables_find(c, b, &t))
		return false;
	scope = scope_find(c, &t, pc - b->code);
	n = c->packing->proved ? scopes_read(c, &t, c->packing->x, scope, own, places) :
				 scopes_prove(c, &t, scope, own, places);
	for (size_t i = 0; i < n; i++)
		script_stack_add(out, at)->place = places[i];
	return n;
}

bool hotspotcode_own(const struct hotspotcode *c, const struct hotspot_blob *b,
		     struct script_place *out)
{
	uint64_t method = 0;

	return word(c, b->at + c->n[HOTSPOT_NM_METHOD], &method) &&
	       hotspotcode_method(c, method, -1, out);
}
