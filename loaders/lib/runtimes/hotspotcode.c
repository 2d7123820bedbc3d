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

uint32_t hotspot_line_find(const uint8_t *table, size_t len, unsigned x, uint32_t bci)
{
	uint32_t at_bci = 0, line = 0, best = 0, best_bci = 0;

	for (size_t at = 0; at < len && table[at];) {
		uint8_t next = table[at++];
		int32_t bcis = next >> 3, lines = next & 7;

		if (next == 0xff && (!signed_read(table, len, &at, x, &bcis) ||
				     !signed_read(table, len, &at, x, &lines)))
			break;
		at_bci += (uint32_t)bcis;
		line += (uint32_t)lines;
		if (at_bci == bci)
			return line <= INT32_MAX ? line : 0;
		if (at_bci < bci && at_bci >= best_bci) {
			best = line;
			best_bci = at_bci;
		}
	}
	return best <= INT32_MAX ? best : 0;
}

/* ---- methods ---- */

static char *symbol_read(const struct hotspotcode *c, uint64_t symbol)
{
	char bytes[SCRIPT_TEXT_MAX + 4];
	uint32_t length = 0;
	size_t n;

	if (!symbol || symbol & 7 || !small(c, symbol + c->n[HOTSPOT_SYMBOL_LENGTH], 2, &length) ||
	    !length)
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

	if (!i || !small(c, pool + c->n[HOTSPOT_POOL_LENGTH], 4, &length) || i >= length ||
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
	       small(c, m->fixed + c->n[HOTSPOT_CONST_CODE_SIZE], 2, &m->code_size) &&
	       small(c, m->fixed + c->n[HOTSPOT_CONST_NAME], 2, &m->name);
}

static unsigned x_of(const struct hotspotcode *c)
{
	return c->version >= 19;
}

static uint32_t line_read(const struct hotspotcode *c, const struct method *m, int64_t bci)
{
	uint8_t table[4096];
	uint32_t flags = 0;
	uint64_t at = m->fixed + c->n[HOTSPOT_SIZE_CONST] + m->code_size;
	size_t n = sizeof(table);

	if (bci < 0 || bci >= m->code_size ||
	    !small(c, m->fixed + c->n[HOTSPOT_CONST_FLAGS], 2, &flags) ||
	    !(flags & c->n[HOTSPOT_HAS_LINES]))
		return 0;
	/* its length is not said; the structure around it may end a page of memory */
	while (n >= 64 && !c->m->read(c->m->ctx, at, table, n))
		n /= 2;
	return n >= 64 ? hotspot_line_find(table, n, x_of(c), (uint32_t)bci) : 0;
}

static char *file_read(const struct hotspotcode *c, const struct method *m)
{
	uint32_t i = 0;

	if (c->has[HOTSPOT_POOL_SOURCE])
		return small(c, m->pool + c->n[HOTSPOT_POOL_SOURCE], 2, &i) ?
			       pool_text(c, m->pool, i) :
			       NULL;
	return c->has[HOTSPOT_CLASS_SOURCE] &&
			       small(c, m->class + c->n[HOTSPOT_CLASS_SOURCE], 2, &i) ?
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

/* ---- compiled code ---- */

/* Where a compiled method's tables are. */
struct tables {
	uint64_t pcs, pcs_end, scopes, scopes_end, metadata, metadata_end;
};

static bool tables_find(const struct hotspotcode *c, const struct hotspot_blob *b, struct tables *t)
{
	uint32_t pcs = 0, end = 0, scopes = 0, metadata = 0, size = 0;
	uint64_t base = b->at;

	if (!small(c, b->at + c->n[HOTSPOT_NM_PCS], 4, &pcs))
		return false;
	if (c->has[HOTSPOT_NM_IMMUTABLE]) {
		if (!word(c, b->at + c->n[HOTSPOT_NM_IMMUTABLE], &base) ||
		    !small(c, b->at + c->n[HOTSPOT_NM_SCOPES_OFFSET], 4, &scopes) ||
		    !small(c, b->at + c->n[HOTSPOT_NM_IMMUTABLE_SIZE], 4, &size) ||
		    !word(c, b->at + c->n[HOTSPOT_NM_MUTABLE], &t->metadata) ||
		    !small(c, b->at + c->n[HOTSPOT_NM_RELOCATIONS], 4, &metadata))
			return false;
		t->scopes = base + scopes;
		t->scopes_end = base + size;
		t->pcs_end = t->scopes;
		t->metadata += metadata;
		t->metadata_end = t->metadata + TABLE_MAX;
	} else {
		if (!word(c, b->at + c->n[HOTSPOT_NM_SCOPES], &t->scopes) ||
		    !small(c, b->at + c->n[HOTSPOT_NM_PCS_END], 4, &end) ||
		    !small(c, b->at + c->n[HOTSPOT_NM_METADATA], 4, &metadata))
			return false;
		t->metadata = base + metadata;
		t->metadata_end = t->scopes;
		t->scopes_end = base + pcs;
		t->pcs_end = base + end;
	}
	t->pcs = base + pcs;
	return t->pcs < t->pcs_end && t->pcs_end - t->pcs <= TABLE_MAX &&
	       t->scopes < t->scopes_end && t->scopes_end - t->scopes <= TABLE_MAX;
}

/* One description: a place in the code, and its scope. false: none, or nonsensical numbers. */
static bool pc_read(const struct hotspotcode *c, const struct tables *t, size_t i, int64_t *offset,
		    uint32_t *scope)
{
	const uint64_t stride = c->n[HOTSPOT_SIZE_PC], at = t->pcs + stride * i;
	uint32_t place = 0, found = 0;

	if (stride < 8 || stride > 64 || at + stride > t->pcs_end ||
	    !small(c, at + c->n[HOTSPOT_PC_OFFSET], 4, &place) ||
	    !small(c, at + c->n[HOTSPOT_PC_SCOPE], 4, &found))
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

/* One scope. false: cut off, or not a method. *scope becomes the caller's. */
static bool scope_read(const struct hotspotcode *c, const struct tables *t, uint32_t *scope,
		       uint64_t *method, struct script_place *out)
{
	uint8_t bytes[SCOPE_BYTES];
	const uint64_t left = t->scopes_end - t->scopes, from = *scope;
	size_t len = left - from < sizeof(bytes) ? (size_t)(left - from) : sizeof(bytes), at = 0;
	uint32_t caller = 0, i = 0, bci = 0;
	unsigned x = x_of(c);

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

bool hotspotcode_scopes(const struct hotspotcode *c, const struct hotspot_blob *b, uint64_t pc,
			size_t at, struct script_stack *out)
{
	struct script_place places[HOTSPOT_INLINE_MAX];
	uint64_t own = 0, method = 0;
	struct tables t = {0};
	uint32_t scope;
	size_t n = 0;

	if (!word(c, b->at + c->n[HOTSPOT_NM_METHOD], &own) || !tables_find(c, b, &t))
		return false;
	scope = scope_find(c, &t, pc - b->code);
	for (; scope && n < HOTSPOT_INLINE_MAX && scope_read(c, &t, &scope, &method, &places[n]);
	     n++)
		;
	if (!n || scope || method != own) { /* the outermost is the one that was compiled */
		while (n)
			script_place_release(&places[--n]);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		script_stack_add(out, at)->place = places[i];
	return true;
}

bool hotspotcode_own(const struct hotspotcode *c, const struct hotspot_blob *b,
		     struct script_place *out)
{
	uint64_t method = 0;

	return word(c, b->at + c->n[HOTSPOT_NM_METHOD], &method) &&
	       hotspotcode_method(c, method, -1, out);
}
