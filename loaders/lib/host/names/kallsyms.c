/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms: lines become raw entries that point into the text; these are sorted, one is chosen for
 * each address, and only then are names copied into a pool. The many __pfx_NAME symbols (the
 * padding in front of NAME) share the pool's NAME: that halves the pool. Addresses are kept as 32
 * bits from the first one where the span allows it, which it does on x86-64 and arm64, else as 64.
 */
#include "loaders/lib/host/names/kallsyms_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

struct raw {
	uint64_t addr;
	uint32_t name; /* offset in the text */
	uint16_t name_len;
	uint16_t module;
	char type;
};

/* ---- lines ---- */

struct line {
	uint64_t addr;
	char type;
	const char *name, *module;
	size_t name_len, module_len;
};

static const char *hex_addr(const char *p, const char *end, uint64_t *out)
{
	uint64_t v = 0;
	int digits = 0;

	for (; p < end; p++, digits++) {
		unsigned int d = (unsigned char)*p - '0';

		if (d > 9)
			d = (unsigned char)*p >= 'a' && (unsigned char)*p <= 'f' ?
				    (unsigned char)*p - 'a' + 10u :
				    99;
		if (d > 15)
			break;
		v = v << 4 | d;
	}
	if (!digits || digits > 16)
		return NULL;
	*out = v;
	return p;
}

static bool line_parse(const char *p, const char *end, struct line *l)
{
	const char *sep;

	p = hex_addr(p, end, &l->addr);
	if (!p || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	l->type = p[1];
	l->name = p + 3;
	sep = memchr(l->name, '\t', (size_t)(end - l->name));
	l->name_len = (size_t)((sep ? sep : end) - l->name);
	l->module = NULL;
	l->module_len = 0;
	if (sep) {
		const char *open = sep + 1;

		if (end - open < 3 || open[0] != '[' || end[-1] != ']')
			return false;
		l->module = open + 1;
		l->module_len = (size_t)(end - 1 - l->module);
	}
	return l->name_len && l->name_len <= NAME_MAX_LEN && l->module_len < 256 &&
	       !memchr(p, 0, (size_t)(end - p));
}

static uint16_t module_index(struct kallsyms *k, const char *name, size_t len)
{
	/* symbols of a module come in a row */
	for (size_t i = k->n_modules; i-- > 1;)
		if (strlen(k->modules[i].name) == len && !memcmp(k->modules[i].name, name, len))
			return (uint16_t)i;
	if (k->n_modules >= UINT16_MAX)
		return 0;
	mem_grow(k->modules, k->n_modules, k->cap_modules);
	k->modules[k->n_modules] = (struct kallsyms_module){.name = mem_strndup(name, len)};
	return (uint16_t)k->n_modules++;
}

static bool name_is(const struct line *l, const char *name)
{
	return l->name_len == strlen(name) && !memcmp(l->name, name, l->name_len);
}

static void note_orc(struct kallsyms *k, const struct line *l)
{
	struct {
		const char *name;
		uint64_t *at;
	} marks[] = {{"_stext", &k->orc.text},
		     {"_etext", &k->orc.text_end},
		     {"__start_orc_unwind_ip", &k->orc.ips},
		     {"__stop_orc_unwind_ip", &k->orc.ips_end},
		     {"__start_orc_unwind", &k->orc.entries},
		     {"arch_rethook_trampoline", &k->orc.hook}};

	if (l->module || (l->name[0] != '_' && l->name[0] != 'a'))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (name_is(l, marks[i].name))
			*marks[i].at = l->addr;
}

/* The named edges of the kernel's text. True: this symbol is an end, not a function. */
static bool note_edge(struct kallsyms *k, const struct line *l)
{
	if (l->name[0] != '_' || l->module)
		return false;
	if (name_is(l, "_text") || (name_is(l, "_stext") && !k->text))
		k->text = l->addr;
	if (name_is(l, "_etext"))
		k->etext = l->addr;
	return name_is(l, "_etext") || name_is(l, "_einittext") || name_is(l, "_end");
}

static bool is_function(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

struct raws {
	struct raw *items;
	size_t n, cap;
	bool sorted;
};

static void take_line(struct kallsyms *k, struct raws *r, const char *data, const struct line *l)
{
	bool edge;

	/* hidden, or an absolute (per-CPU) offset */
	if (!l->addr || l->type == 'A' || l->type == 'a') {
		k->hidden |= !l->addr && is_function(l->type);
		return;
	}
	edge = note_edge(k, l);
	note_orc(k, l);
	mem_grow(r->items, r->n, r->cap);
	if (r->n && r->items[r->n - 1].addr > l->addr)
		r->sorted = false;
	r->items[r->n++] =
		(struct raw){.addr = l->addr,
			     .name = (uint32_t)(l->name - data),
			     .name_len = (uint16_t)l->name_len,
			     .module = l->module ? module_index(k, l->module, l->module_len) : 0,
			     .type = edge ? 'R' : l->type};
}

static void read_lines(struct kallsyms *k, struct raws *r, const char *data, size_t len)
{
	for (size_t pos = 0; pos < len;) {
		const char *p = data + pos, *nl = memchr(p, '\n', len - pos);
		size_t n = nl ? (size_t)(nl - p) : len - pos;
		struct line l;

		pos += n + 1;
		if (line_parse(p, p + n, &l))
			take_line(k, r, data, &l);
		else
			k->skipped += n > 0;
	}
}

/* ---- choosing ---- */

static int raw_order(const void *a, const void *b)
{
	const struct raw *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static size_t underscores(const char *name, size_t len)
{
	size_t n = 0;

	while (n < len && name[n] == '_')
		n++;
	return n;
}

/* Is b a better name than a for the same address? */
static bool better(const char *data, const struct raw *a, const struct raw *b)
{
	bool fa = is_function(a->type), fb = is_function(b->type);
	size_t ua, ub;

	if (fa != fb)
		return fb;
	if ((a->type == 'w' || a->type == 'W') != (b->type == 'w' || b->type == 'W'))
		return a->type == 'w' || a->type == 'W';
	if ((a->type == 't') != (b->type == 't'))
		return a->type == 't';
	ua = underscores(data + a->name, a->name_len);
	ub = underscores(data + b->name, b->name_len);
	if (ua != ub)
		return ub < ua;
	return b->name_len > a->name_len;
}

/* Keep one entry an address, and of markers in a row the first. */
static void choose(const char *data, struct raws *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct raw *last = n ? &r->items[n - 1] : NULL;

		if (last && last->addr == r->items[i].addr) {
			if (better(data, last, &r->items[i]))
				*last = r->items[i];
		} else if (!last || is_function(last->type) || is_function(r->items[i].type)) {
			r->items[n++] = r->items[i];
		}
	}
	r->n = n;
}

/* ---- the table ---- */

static uint32_t pool_add(struct kallsyms *k, const char *name, size_t len)
{
	size_t at = k->pool_len;

	if (at + len + 1 > k->pool_cap) {
		k->pool_cap = k->pool_cap ? k->pool_cap * 2 : 65536;
		while (at + len + 1 > k->pool_cap)
			k->pool_cap *= 2;
		k->pool = mem_realloc(k->pool, k->pool_cap);
	}
	memcpy(k->pool + at, name, len);
	k->pool[at + len] = 0;
	k->pool_len += len + 1;
	return (uint32_t)at;
}

static bool is_pfx_of(const char *data, const struct raw *pfx, const struct raw *next)
{
	return is_function(next->type) && pfx->name_len == next->name_len + PFX_LEN &&
	       !memcmp(data + pfx->name, PFX, PFX_LEN) &&
	       !memcmp(data + pfx->name + PFX_LEN, data + next->name, next->name_len);
}

static void fill_names(struct kallsyms *k, const char *data, const struct raws *r)
{
	for (size_t i = r->n; i-- > 0;) {
		const struct raw *e = &r->items[i];

		if (!is_function(e->type)) {
			k->name[i] = NAME_MARKER;
			continue;
		}
		k->functions++;
		if (i + 1 < r->n && !(k->name[i + 1] & NAME_PFX) && is_pfx_of(data, e, e + 1))
			k->name[i] = k->name[i + 1] | NAME_PFX;
		else
			k->name[i] = pool_add(k, data + e->name, e->name_len);
	}
}

static void fill(struct kallsyms *k, const char *data, const struct raws *r)
{
	bool narrow;

	k->n = r->n;
	if (!r->n)
		return;
	k->first = r->items[0].addr;
	narrow = r->items[r->n - 1].addr - k->first <= UINT32_MAX;
	k->name = mem_array(r->n, sizeof(*k->name));
	k->module = mem_array(r->n, sizeof(*k->module));
	if (narrow)
		k->rel = mem_array(r->n, sizeof(*k->rel));
	else
		k->wide = mem_array(r->n, sizeof(*k->wide));
	for (size_t i = 0; i < r->n; i++) {
		const struct raw *e = &r->items[i];

		if (narrow)
			k->rel[i] = (uint32_t)(e->addr - k->first);
		else
			k->wide[i] = e->addr;
		k->module[i] = e->module;
		if (!k->modules[e->module].base && is_function(e->type))
			k->modules[e->module].base = e->addr;
	}
	fill_names(k, data, r);
	k->pool = mem_realloc(k->pool, k->pool_len ? k->pool_len : 1);
	k->pool_cap = k->pool_len;
}

int kallsyms_parse(const char *data, size_t len, struct kallsyms **out)
{
	struct raws r = {.sorted = true};
	struct kallsyms *k;

	if (len > KALLSYMS_FILE_MAX)
		return -E2BIG;
	k = mem_alloc(sizeof(*k));
	mem_grow(k->modules, k->n_modules, k->cap_modules);
	k->modules[k->n_modules++] = (struct kallsyms_module){.name = mem_strdup("")};
	read_lines(k, &r, data, len);
	if (!r.sorted)
		qsort(r.items, r.n, sizeof(*r.items), raw_order);
	choose(data, &r);
	fill(k, data, &r);
	free(r.items);
	if (k->functions)
		k->hidden = false;
	k->modules[0].base = k->text;
	*out = k;
	return 0;
}

/* The text is read into pages of its own, which go back to the system as a whole. */
int kallsyms_load(const char *path, struct kallsyms **out)
{
	cleanup_fd int fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	size_t cap = 8u << 20, n = 0;
	char *buf;
	int rc = 0;

	if (fd < 0)
		return -errno;
	buf = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (buf != MAP_FAILED) {
		ssize_t got;

		if (n == cap) {
			if (cap >= KALLSYMS_FILE_MAX) {
				rc = -E2BIG;
				break;
			}
			buf = mremap(buf, cap, cap * 2, MREMAP_MAYMOVE);
			if (buf == MAP_FAILED)
				break;
			cap *= 2;
		}
		got = read(fd, buf + n, cap - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			rc = got ? -errno : kallsyms_parse(buf, n, out);
			break;
		}
		n += (size_t)got;
	}
	if (buf == MAP_FAILED)
		return -ENOMEM;
	munmap(buf, cap);
	return rc;
}
