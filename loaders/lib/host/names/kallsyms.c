/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the text becomes the table: each line gives a raw entry that points into the text; these are
 * sorted, one is chosen for each address, and only then are names copied into a pool. The many
 * __pfx_NAME symbols (the padding in front of NAME) share the pool's NAME: that halves the pool.
 * Addresses are kept as 32 bits from the first one where the span allows it, which it does on
 * x86-64 and arm64, else as 64.
 */
#include "loaders/lib/host/names/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/file/owner.h"
#include "schema/base/file/subdir.h"

#define NAME_MARKER  UINT32_MAX /* not a function: ends the one before */
#define NAME_PFX     0x80000000u
#define PFX          "__pfx_"
#define PFX_LEN      6
#define NAME_MAX_LEN 1024

struct kallsyms_module {
	const char *name;
	uint64_t base;
};

struct kallsyms {
	uint64_t first;   /* addresses are relative to it */
	uint32_t *rel;    /* either this */
	uint64_t *wide;   /* or this, if the span needs it */
	uint32_t *name;   /* offset in the pool, NAME_PFX, NAME_MARKER */
	uint16_t *module; /* index, 0: the kernel */
	size_t n, functions, skipped;
	char *pool;
	size_t pool_len, pool_cap;
	struct kallsyms_module *modules;
	size_t n_modules, cap_modules;
	uint64_t text, etext;
	struct kallsyms_orc orc;
	bool hidden;
	bool borrowed; /* the arrays and names above (but `modules`) are not ours */
	void *kept;    /* the mapping that contains them, NULL: the caller's memory */
	size_t kept_bytes;
	char scratch[NAME_MAX_LEN + PFX_LEN + 1];
};

static inline uint64_t kallsyms_addr(const struct kallsyms *k, size_t i)
{
	return k->rel ? k->first + k->rel[i] : k->wide[i];
}

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

/* Reads the text into an anonymous mapping, so that all of it goes back to the system. */
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

#define SPAN_KERNEL (1u << 20)
#define SPAN_MODULE (64u << 10)

/* Index of the last entry at or below addr; false: none. */
static bool find_entry(const struct kallsyms *k, uint64_t addr, size_t *at)
{
	size_t lo = 0, hi = k->n;

	if (!k->n || addr < k->first)
		return false;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (kallsyms_addr(k, mid) <= addr)
			lo = mid;
		else
			hi = mid;
	}
	*at = lo;
	return true;
}

static const char *name_of(struct kallsyms *k, uint32_t name)
{
	if (!(name & NAME_PFX))
		return k->pool + name;
	snprintf(k->scratch, sizeof(k->scratch), PFX "%s", k->pool + (name & ~NAME_PFX));
	return k->scratch;
}

bool kallsyms_find(struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out)
{
	const struct kallsyms_module *m;
	uint64_t start;
	size_t i;

	if (!find_entry(k, addr, &i) || k->name[i] == NAME_MARKER)
		return false;
	start = kallsyms_addr(k, i);
	m = &k->modules[k->module[i]];
	if (addr - start >= (k->module[i] ? SPAN_MODULE : SPAN_KERNEL))
		return false;
	out->name = name_of(k, k->name[i]);
	out->module = m->name;
	out->start = start;
	out->base = strcmp(m->name, "bpf") ? m->base : start;
	return true;
}

bool kallsyms_is_text(const struct kallsyms *k, uint64_t addr)
{
	return k->text && addr >= k->text && addr < k->etext;
}

uint64_t kallsyms_text(const struct kallsyms *k)
{
	return k->text;
}

bool kallsyms_hidden(const struct kallsyms *k)
{
	return k->hidden;
}

bool kallsyms_orc(const struct kallsyms *k, struct kallsyms_orc *out)
{
	const struct kallsyms_orc *o = &k->orc;

	if (!o->text || o->text_end <= o->text || !o->ips || o->ips_end <= o->ips || !o->entries)
		return false;
	*out = *o;
	return true;
}

size_t kallsyms_count(const struct kallsyms *k)
{
	return k->functions;
}

size_t kallsyms_skipped(const struct kallsyms *k)
{
	return k->skipped;
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return k->n * ((k->rel ? sizeof(*k->rel) : sizeof(*k->wide)) + sizeof(*k->name) +
		       sizeof(*k->module)) +
	       k->pool_cap + sizeof(*k);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n_modules && !k->borrowed; i++)
		free((char *)(uintptr_t)k->modules[i].name);
	free(k->modules);
	if (!k->borrowed) {
		free(k->rel);
		free(k->wide);
		free(k->name);
		free(k->module);
		free(k->pool);
	}
	if (k->kept)
		munmap(k->kept, k->kept_bytes);
	free(k);
}

#define NAME "images/kallsyms"

_Static_assert(sizeof(struct kallsyms_head) == 120, "no padding");

struct module_row {
	uint64_t base, name;
};

/* ---- pack ---- */

static bool is_passing(const char *module)
{
	return !strcmp(module, "bpf") || !strncmp(module, "__builtin__", 11);
}

static bool is_passing_at(const struct kallsyms *k, size_t i)
{
	return is_passing(k->modules[k->module[i]].name);
}

/* The mark or name that the file has for an entry (rule 2). */
static uint32_t kept_name(const struct kallsyms *k, size_t i)
{
	bool last =
		i + 1 == k->n || k->module[i + 1] != k->module[i] || k->name[i + 1] == NAME_MARKER;
	bool open = i + 1 < k->n && is_passing_at(k, i + 1);

	return open || (k->module[i] && last) ? NAME_MARKER : k->name[i];
}

static void pad(struct strbuf *out)
{
	while (out->len % 8)
		strbuf_addch(out, 0);
}

static void pack_entries(const struct kallsyms *k, struct strbuf *out, struct kallsyms_head *h)
{
	for (size_t i = 0; i < k->n; i++) {
		uint64_t addr = kallsyms_addr(k, i);
		uint32_t rel = (uint32_t)(addr - h->first);

		if (!is_passing_at(k, i))
			strbuf_add(out, h->flags & KALLSYMS_WIDE ? (void *)&addr : &rel,
				   h->flags & KALLSYMS_WIDE ? 8 : 4);
	}
	pad(out);
	for (size_t i = 0; i < k->n; i++) {
		uint32_t name = kept_name(k, i);

		if (is_passing_at(k, i))
			continue;
		strbuf_add(out, &name, sizeof(name));
		h->n++;
		h->functions += name != NAME_MARKER;
	}
	pad(out);
	for (size_t i = 0; i < k->n; i++)
		if (!is_passing_at(k, i))
			strbuf_add(out, &k->module[i], sizeof(k->module[i]));
	pad(out);
}

static uint64_t first_kept(const struct kallsyms *k)
{
	for (size_t i = 0; i < k->n; i++)
		if (!is_passing_at(k, i))
			return kallsyms_addr(k, i);
	return 0;
}

void kallsyms_pack(const struct kallsyms *k, uint64_t key, struct strbuf *out)
{
	struct kallsyms_head h = {.magic = KALLSYMS_MAGIC,
				  .key = key,
				  .first = first_kept(k),
				  .text = k->text,
				  .etext = k->etext,
				  .orc = k->orc,
				  .flags = k->rel ? 0 : KALLSYMS_WIDE,
				  .n_modules = (uint32_t)k->n_modules};
	struct strbuf names cleanup_strbuf = STRBUF_INIT;

	strbuf_reset(out);
	strbuf_add(out, &h, sizeof(h));
	pack_entries(k, out, &h);
	for (size_t i = 0; i < k->n_modules; i++) {
		struct module_row row = {k->modules[i].base, k->pool_len + names.len};

		strbuf_add(out, &row, sizeof(row));
		strbuf_add(&names, k->modules[i].name, strlen(k->modules[i].name) + 1);
	}
	h.pool_bytes = k->pool_len + names.len;
	strbuf_add(out, k->pool, k->pool_len);
	strbuf_add(out, names.buf, names.len);
	memcpy(out->buf, &h, sizeof(h));
	h.hash = hash_bytes(HASH_SEED, out->buf + 16, out->len - 16);
	memcpy(out->buf, &h, sizeof(h));
}

/* ---- unpack ---- */

static size_t padded(size_t n)
{
	return (n + 7) / 8 * 8;
}

/* Are all names within the pool and all modules known? Then the table can be used. */
static bool is_sound(const struct kallsyms *k)
{
	if (!k->pool_len || k->pool[k->pool_len - 1] || !k->n_modules ||
	    (k->n && kallsyms_addr(k, 0) != k->first))
		return false;
	for (size_t i = 0; i < k->n; i++)
		if ((k->name[i] != NAME_MARKER && (k->name[i] & ~NAME_PFX) >= k->pool_len) ||
		    k->module[i] >= k->n_modules)
			return false;
	return true;
}

static int unpack_modules(struct kallsyms *k, const struct module_row *rows, size_t n)
{
	k->modules = mem_array(n ? n : 1, sizeof(*k->modules));
	k->n_modules = n;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].name >= k->pool_len)
			return -EBADMSG;
		k->modules[i] = (struct kallsyms_module){k->pool + rows[i].name, rows[i].base};
	}
	return 0;
}

int kallsyms_unpack(const void *data, size_t len, uint64_t key, struct kallsyms **out)
{
	const char *at = data;
	struct kallsyms_head h;
	struct kallsyms *k;
	size_t wide, names, modules, rows;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	if (memcmp(h.magic, KALLSYMS_MAGIC, sizeof(h.magic)) || h.key != key)
		return -ESTALE;
	wide = padded((size_t)h.n * (h.flags & KALLSYMS_WIDE ? 8 : 4));
	names = padded((size_t)h.n * 4);
	modules = padded((size_t)h.n * 2);
	rows = (size_t)h.n_modules * sizeof(struct module_row);
	if (h.n_modules > UINT16_MAX || h.pool_bytes > KALLSYMS_FILE_MAX ||
	    len != sizeof(h) + wide + names + modules + rows + h.pool_bytes)
		return -EBADMSG;
	k = mem_alloc(sizeof(*k));
	at += sizeof(h);
	if (h.flags & KALLSYMS_WIDE)
		k->wide = (void *)(uintptr_t)at;
	else
		k->rel = (void *)(uintptr_t)at;
	k->name = (void *)(uintptr_t)(at + wide);
	k->module = (void *)(uintptr_t)(at + wide + names);
	k->pool = (char *)(uintptr_t)(at + wide + names + modules + rows);
	k->pool_len = k->pool_cap = h.pool_bytes;
	k->n = h.n;
	k->functions = h.functions;
	k->first = h.first;
	k->text = h.text;
	k->etext = h.etext;
	k->orc = h.orc;
	k->borrowed = true;
	if (unpack_modules(k, (const void *)(at + wide + names + modules), h.n_modules) ||
	    !is_sound(k)) {
		kallsyms_free(k);
		return -EBADMSG;
	}
	*out = k;
	return 0;
}

/* ---- the file ---- */

/* A line of /proc/modules: NAME SIZE USES USERS STATE ADDRESS [TAINT]. Uses and users change all
 * the time: they do not count. */
static uint64_t hash_modules(uint64_t key)
{
	cleanup_file FILE *f = fopen("/proc/modules", "re");
	char line[4096], name[64], address[32];
	unsigned long size;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lu %*s %*s %*s %31s", name, &size, address) == 3)
			key = hash_str(hash_u64(hash_str(key, name), size), address);
	return key;
}

/* 0: unknown. */
static uint64_t key_now(void)
{
	cleanup_file FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64];

	if (!f || !fgets(boot, sizeof(boot), f))
		return 0;
	return hash_modules(hash_str(HASH_SEED, boot));
}

static int open_kept(const char *store_dir, struct stat *st)
{
	cleanup_fd int fd = -1;
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/" NAME, store_dir) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || (st->st_mode & 077) ||
	    (size_t)st->st_size < sizeof(struct kallsyms_head))
		return -EBADMSG;
	futimens(fd, NULL); /* images/ drops the least recently used files first */
	return take_fd(&fd);
}

int kallsyms_kept(const char *store_dir, struct kallsyms **out)
{
	uint64_t key = key_now();
	struct stat st;
	cleanup_fd int fd = key ? open_kept(store_dir, &st) : -ENOENT;
	const struct kallsyms_head *h;
	size_t len;
	void *map;
	int rc = -EBADMSG;

	if (fd < 0)
		return fd;
	len = (size_t)st.st_size;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	h = map;
	if (h->hash == hash_bytes(HASH_SEED, (char *)map + 16, len - 16))
		rc = kallsyms_unpack(map, len, key, out);
	if (rc) {
		munmap(map, len);
		return rc;
	}
	(*out)->kept = map;
	(*out)->kept_bytes = len;
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n <= 0)
			return n ? -errno : -ENOSPC;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

void kallsyms_keep(const struct kallsyms *k, const char *store_dir)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	uint64_t key = key_now();
	cleanup_fd int dir = -1, fd = -1;
	char tmp[64];
	int rc;

	if (!key || kallsyms_hidden(k) || !k->functions)
		return;
	dir = subdir_open(store_dir, "images");
	snprintf(tmp, sizeof(tmp), ".tmp-%d-kallsyms", (int)getpid());
	fd = dir < 0 ? -1 :
		       openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return; /* no such folder, or it belongs to another user */
	owner_inherit_at(dir, tmp);
	kallsyms_pack(k, key, &bytes);
	rc = write_all(fd, bytes.buf, bytes.len);
	if (!rc && renameat(dir, tmp, dir, "kallsyms"))
		rc = -errno;
	if (rc) {
		log_debug("the kernel's symbols are not kept: %s", strerror(-rc));
		unlinkat(dir, tmp, 0);
	}
}
