/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's conditions. */
#include "loaders/index/code/tlspart.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/code/nameless.h"
#include "loaders/index/code/tlscode.h"
#include "loaders/index/elf/region.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define FUNCTION_MAX (64u << 10)
#define DEEP         5u /* functions that lead on to each other */
#define PAGE         4096u
#define PAGES        8u
#define METHOD_MOST  0x200
#define NONE         IMAGE_TLS_NO_REG

enum { R8 = 8, R9 = 9 };

/* ---- the table ---- */

static const struct row {
	uint8_t library, operation, result;
	const char *name;
	uint8_t args[TLSCODE_ARGS];
	uint8_t bytes;  /* of what it returns */
	uint8_t second; /* the register of a second word of the result */
	bool instead; /* of rows of the same operation that follow and are only another way to it */
} ROWS[] = {
	{IMAGE_TLS_OPENSSL,
	 IMAGE_TLS_READ,
	 IMAGE_TLS_LENGTH,
	 "SSL_read",
	 {X86_RDI, X86_RSI, X86_RDX, NONE},
	 4,
	 NONE,
	 false},
	{IMAGE_TLS_OPENSSL,
	 IMAGE_TLS_READ,
	 IMAGE_TLS_POINTER,
	 "SSL_read_ex",
	 {X86_RDI, X86_RSI, X86_RDX, X86_RCX},
	 4,
	 NONE,
	 false},
	{IMAGE_TLS_OPENSSL,
	 IMAGE_TLS_WRITE,
	 IMAGE_TLS_LENGTH,
	 "SSL_write",
	 {X86_RDI, X86_RSI, X86_RDX, NONE},
	 4,
	 NONE,
	 false},
	{IMAGE_TLS_OPENSSL,
	 IMAGE_TLS_WRITE,
	 IMAGE_TLS_POINTER,
	 "SSL_write_ex2",
	 {X86_RDI, X86_RSI, X86_RDX, R8},
	 4,
	 NONE,
	 true},
	{IMAGE_TLS_OPENSSL,
	 IMAGE_TLS_WRITE,
	 IMAGE_TLS_POINTER,
	 "SSL_write_ex",
	 {X86_RDI, X86_RSI, X86_RDX, X86_RCX},
	 4,
	 NONE,
	 false},
	{IMAGE_TLS_GNUTLS,
	 IMAGE_TLS_READ,
	 IMAGE_TLS_LENGTH,
	 "gnutls_record_recv",
	 {X86_RDI, X86_RSI, X86_RDX, NONE},
	 8,
	 NONE,
	 false},
	{IMAGE_TLS_GNUTLS,
	 IMAGE_TLS_WRITE,
	 IMAGE_TLS_LENGTH,
	 "gnutls_record_send2",
	 {X86_RDI, X86_RSI, X86_RDX, NONE},
	 8,
	 NONE,
	 true},
	{IMAGE_TLS_GNUTLS,
	 IMAGE_TLS_WRITE,
	 IMAGE_TLS_LENGTH,
	 "gnutls_record_send",
	 {X86_RDI, X86_RSI, X86_RDX, NONE},
	 8,
	 NONE,
	 false},
	{IMAGE_TLS_GO,
	 IMAGE_TLS_READ,
	 IMAGE_TLS_LENGTH,
	 "crypto/tls.(*Conn).Read",
	 {X86_RAX, X86_RBX, X86_RCX, NONE},
	 8,
	 NONE,
	 false},
	{IMAGE_TLS_GO,
	 IMAGE_TLS_WRITE,
	 IMAGE_TLS_LENGTH,
	 "crypto/tls.(*Conn).Write",
	 {X86_RAX, X86_RBX, X86_RCX, NONE},
	 8,
	 NONE,
	 false},
};
/* What ends a connection: it is given in rdi. */
static const struct end_row {
	uint8_t library;
	const char *name;
} ENDS[TLSPART_ENDS] = {
	{IMAGE_TLS_OPENSSL, "SSL_free"},
	{IMAGE_TLS_OPENSSL, "SSL_clear"},
	{IMAGE_TLS_GNUTLS, "gnutls_deinit"},
};
#define ROW_COUNT ARRAY_SIZE(ROWS)
_Static_assert(ROW_COUNT <= TLSPART_FUNCTIONS, "room for each row");

/* What Python, Node, Java, PHP, Ruby and Erlang look up in a library that is a module of theirs. */
static bool is_module(const char *name)
{
	static const char *const BEGINS[] = {"PyInit_",
					     "napi_register_module_v",
					     "node_register_module_v",
					     "JNI_OnLoad",
					     "get_module",
					     "Init_",
					     "nif_init"};

	for (size_t i = 0; i < ARRAY_SIZE(BEGINS); i++)
		if (*name == *BEGINS[i] && !strncmp(name, BEGINS[i], strlen(BEGINS[i])))
			return true;
	return false;
}

void tls_symbols_note(struct tls_symbols *t, const char *name, uint64_t addr, uint64_t size, int go)
{
	if (!go && (*name == 'S' || *name == 'g'))
		for (size_t i = 0; i < ROW_COUNT; i++)
			if (ROWS[i].library != IMAGE_TLS_GO && !strcmp(ROWS[i].name, name))
				t->at[i] = (struct elf_range){addr, addr + size};
	if (go && *name == 'c')
		for (size_t i = 0; i < ROW_COUNT; i++)
			if (ROWS[i].library == IMAGE_TLS_GO && !strcmp(ROWS[i].name, name))
				t->at[i] = (struct elf_range){addr, addr + size};
	for (size_t i = 0; !go && (*name == 'S' || *name == 'g') && i < TLSPART_ENDS; i++)
		if (!strcmp(ENDS[i].name, name))
			t->ends[i] = (struct elf_range){addr, addr + size};
	if (*name == 'T' && !strcmp(name, "TLS_method"))
		t->methods = addr;
	if (!go)
		record_symbols_note(&t->records, name, addr, size);
	/* Rust's names, of both kinds */
	if (*name == '_' && !t->rustls && strstr(name, "6rustls4conn"))
		t->rustls = true;
	if (!go && addr && !t->module)
		t->module = is_module(name);
}

/* ---- bytes ---- */

struct page {
	uint64_t vaddr;
	size_t len;
	uint8_t *bytes; /* own */
};

struct part {
	struct elf_file *f;
	const struct tls_symbols *syms;
	const struct rows *rows;
	struct tls_part *out;
	struct page pages[PAGES];
	unsigned next_page;
	uint64_t method; /* the table that TLS_method returns; 0: not looked for, or none */
	bool method_sought;
	int rc; /* of reading the file */
};

static const struct page *page_of(struct part *p, uint64_t vaddr)
{
	struct page *g;
	uint64_t left = elf_bytes_at(p->f, vaddr);
	void *bytes = NULL;

	for (unsigned i = 0; i < PAGES; i++)
		if (p->pages[i].bytes && vaddr >= p->pages[i].vaddr &&
		    vaddr - p->pages[i].vaddr < p->pages[i].len)
			return &p->pages[i];
	left = left < PAGE ? left : PAGE;
	if (!left || p->rc)
		return NULL;
	p->rc = elf_read_at(p->f, vaddr, left, &bytes);
	if (p->rc == -ERANGE || p->rc == -EFBIG)
		p->rc = 0;
	if (!bytes)
		return NULL;
	g = &p->pages[p->next_page++ % PAGES];
	free(g->bytes);
	*g = (struct page){.vaddr = vaddr, .len = (size_t)left, .bytes = bytes};
	return g;
}

static size_t part_read(void *ctx, uint64_t vaddr, uint8_t *out)
{
	size_t n = 0;

	while (n < X86INSN_MAX) {
		const struct page *g = page_of(ctx, vaddr + n);

		if (!g)
			break;
		for (size_t at = (size_t)(vaddr + n - g->vaddr); at < g->len && n < X86INSN_MAX;
		     at++)
			out[n++] = g->bytes[at];
	}
	return n;
}

/* ---- functions ---- */

/* A function and what is given to it. */
struct function {
	uint64_t start, end;
	struct tlscode_asked asked;
	uint8_t check_reg[2], check_value[2];
};

/* Where the function ends that begins at `start`, by .eh_frame. 0: nothing says so. */
static uint64_t end_of(const struct part *p, uint64_t start)
{
	const struct rows *r = p->rows;

	for (size_t i = 0; r && i < r->span_count; i++)
		if (r->spans[i].source == ROWS_EH_FRAME && r->base + r->spans[i].lo == start)
			return r->base + r->spans[i].hi;
	return 0;
}

static uint64_t word_at(struct part *p, uint64_t vaddr)
{
	cleanup_region struct region r = {0};
	int rc = region_read(p->f, vaddr, 8, &r);

	if (rc && rc != -ENOENT && !p->rc)
		p->rc = rc;
	return rc ? 0 : region_word(&r, 0, 8);
}

/* TLS_method: an address into rax, ret. */
static uint64_t method_find(struct part *p)
{
	uint8_t bytes[X86INSN_MAX + 1] = {0};
	struct x86insn x;
	uint64_t at = p->syms->methods;

	for (unsigned k = 0; k < 4 && at; k++) {
		size_t n = part_read(p, at, bytes);

		if (!x86insn_read(bytes, n, &x))
			return 0;
		if (!x.map && x.opcode == 0x8d && x.reg == X86_RAX && !x.mod && (x.rm & 7) == 5)
			return at + x.len + (uint64_t)(int64_t)x.disp;
		if (!x.map && ((x.opcode == 0xb8 && !(x.rex & 1)) ||
			       (x.opcode == 0xc7 && x.mod == 3 && x.rm == X86_RAX)))
			return (uint64_t)(uint32_t)x.imm;
		at += x.len;
	}
	return 0;
}

static uint64_t method_at(struct part *p, int32_t displacement)
{
	if (!p->method_sought)
		p->method = method_find(p);
	p->method_sought = true;
	if (!p->method || displacement < 0x18 || displacement > METHOD_MOST)
		return 0;
	return word_at(p, p->method + (uint64_t)displacement);
}

static const uint8_t given[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, R8, R9};

/* 2. A number that is no argument there is the same number at each call by this way, too. */
static void checks_find(const struct tlscode_lead *l, struct function *g)
{
	unsigned n = 0;

	for (unsigned r = 1; r < sizeof(given) && n < 2; r++) {
		const struct codeflow_value *v = &l->regs[given[r]];

		if (v->holds != CODEFLOW_NUMBER || v->number < 0 || v->number > UINT8_MAX)
			continue;
		g->check_reg[n] = given[r];
		g->check_value[n++] = (uint8_t)v->number;
	}
}

/* A stub of the PLT leads through a slot, which relocation fills: not followed. */
static bool lead_function(struct part *p, const struct function *from, const struct tlscode_lead *l,
			  struct function *out)
{
	struct function g = {.start = l->far ? method_at(p, l->displacement) : l->target,
			     .check_reg = {NONE, NONE}};

	g.end = g.start ? end_of(p, g.start) : 0;
	if (!g.end || g.end - g.start > FUNCTION_MAX || from->asked.second != NONE)
		return false;
	g.asked.second = NONE;
	for (unsigned k = 0; k < TLSCODE_ARGS; k++) {
		g.asked.args[k] = NONE;
		for (unsigned r = 0; r < sizeof(given) && from->asked.args[k] != NONE; r++)
			if (l->regs[given[r]].holds == CODEFLOW_ARG &&
			    l->regs[given[r]].arg == from->asked.args[k])
				g.asked.args[k] = given[r];
		if (g.asked.args[k] == NONE && from->asked.args[k] != NONE)
			return false;
	}
	checks_find(l, &g);
	*out = g;
	return true;
}

/* ---- sites ---- */

static uint64_t offset_of(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *s = &f->segments[i];

		if (s->p_type == PT_LOAD && s->p_flags & PF_X && vaddr >= s->p_vaddr &&
		    vaddr - s->p_vaddr < s->p_filesz)
			return s->p_offset + (vaddr - s->p_vaddr);
	}
	return 0;
}

static struct image_tls_site site_begin(const struct row *row, uint8_t role)
{
	return (struct image_tls_site){.library = row->library,
				       .operation = row->operation,
				       .role = role,
				       .result = row->result,
				       .args = {NONE, NONE, NONE, NONE},
				       .check_reg = {NONE, NONE}};
}

/* false: no room. The same site, found by two ways, is one. */
static bool site_put(struct part *p, const struct image_tls_site *s)
{
	for (size_t i = 0; i < p->out->count; i++)
		if (!memcmp(&p->out->sites[i], s, sizeof(*s)))
			return true;
	if (p->out->count == IMAGE_TLS_SITES)
		return false;
	p->out->sites[p->out->count++] = *s;
	return true;
}

static bool site_add(struct part *p, const struct row *row, uint8_t role, const struct function *fn,
		     const struct tlscode_site *t)
{
	struct image_tls_site s = site_begin(row, role);

	s.offset = offset_of(p->f, t->at);
	memcpy(s.bytes, t->bytes, sizeof(s.bytes));
	memset(s.bytes + (t->len < sizeof(s.bytes) ? t->len : sizeof(s.bytes)), 0,
	       sizeof(s.bytes) - (t->len < sizeof(s.bytes) ? t->len : sizeof(s.bytes)));
	s.length = t->len;
	s.slow = t->slow;
	s.when = t->when;
	s.condition = t->condition;
	if (role != IMAGE_TLS_RESULT) {
		memcpy(s.args, t->args, sizeof(s.args));
		memcpy(s.check_reg, fn->check_reg, sizeof(s.check_reg));
		memcpy(s.check_value, fn->check_value, sizeof(s.check_value));
	} else {
		for (unsigned i = 0; i < 2; i++)
			s.value[i] = (struct image_tls_value){
				.place = t->value[i].kind,
				.reg = t->value[i].reg,
				.at = t->value[i].at,
				.bytes = t->value[i].bytes < row->bytes ? t->value[i].bytes :
									  row->bytes};
	}
	return s.offset && site_put(p, &s);
}

static bool sites_add(struct part *p, const struct row *row, const struct function *fn,
		      const struct tlscode_found *found)
{
	bool good = found->entry.len && !found->too_many &&
		    site_add(p, row, IMAGE_TLS_ENTRY, fn, &found->entry);

	for (size_t i = 0; i < found->result_count && good; i++)
		good = site_add(p, row, IMAGE_TLS_RESULT, fn, &found->results[i]);
	return good;
}

/* Its own results say more than that nothing went. */
static bool says_something(const struct tlscode_found *found)
{
	for (size_t i = 0; i < found->result_count; i++)
		if (found->results[i].value[0].kind != TLSCODE_NUMBER ||
		    found->results[i].value[0].at > 0)
			return true;
	return false;
}

/* 1, 2: sites of a function, or of those that it leads to. *inner: some are those of others. */
static bool function_sites(struct part *p, const struct row *row, const struct function *fn,
			   unsigned depth, bool *inner)
{
	struct codeflow_reader reader = {.ctx = p, .read = part_read};
	cleanup_codeflow struct codeflow flow = {.restarts = row->library == IMAGE_TLS_GO};
	cleanup_free struct tlscode_found *found = mem_alloc(sizeof(*found));
	bool good = codeflow_make(&flow, &reader, fn->start, fn->end);

	if (!good)
		return false;
	tlscode_find(&flow, &fn->asked, found);
	if (!found->open)
		return !says_something(found) || sites_add(p, row, fn, found);
	*inner = true;
	if (!depth || !found->lead_count || found->lead_count == TLSCODE_LEADS_MAX)
		return false;
	for (size_t i = 0; i < found->lead_count && good; i++) {
		struct function next;

		good = !(found->leads[i].changed && row->result == IMAGE_TLS_LENGTH) &&
		       lead_function(p, fn, &found->leads[i], &next) &&
		       function_sites(p, row, &next, depth - 1, inner);
	}
	return good;
}

static bool slow_sites(struct part *p, const struct row *row, const struct function *fn)
{
	struct codeflow_reader reader = {.ctx = p, .read = part_read};
	cleanup_codeflow struct codeflow flow = {.restarts = row->library == IMAGE_TLS_GO};
	cleanup_free struct tlscode_found *found = mem_alloc(sizeof(*found));

	return codeflow_make(&flow, &reader, fn->start, fn->end) &&
	       tlscode_find_slow(&flow, &fn->asked, found) && sites_add(p, row, fn, found);
}

/* ---- operations ---- */

static bool row_there(const struct part *p, size_t i)
{
	return p->syms->at[i].start && p->syms->at[i].end > p->syms->at[i].start &&
	       p->syms->at[i].end - p->syms->at[i].start <= FUNCTION_MAX;
}

static struct function row_function(const struct part *p, size_t i)
{
	struct function fn = {.start = p->syms->at[i].start,
			      .end = p->syms->at[i].end,
			      .asked = {.second = ROWS[i].second},
			      .check_reg = {NONE, NONE}};

	memcpy(fn.asked.args, ROWS[i].args, sizeof(fn.asked.args));
	return fn;
}

/* 4, 5 */
static void row_slow(struct part *p, size_t i)
{
	const struct function fn = row_function(p, i);
	const struct image_tls_site blind = site_begin(&ROWS[i], IMAGE_TLS_BLIND);
	const size_t before = p->out->count;

	if (slow_sites(p, &ROWS[i], &fn))
		return;
	p->out->count = before;
	site_put(p, &blind);
}

/* The rows [from, to) are of one operation. */
static void operation_sites(struct part *p, size_t from, size_t to)
{
	const size_t before = p->out->count;
	size_t slow[TLSPART_FUNCTIONS], slow_count = 0;

	for (size_t i = from; i < to; i++) {
		const struct function fn = row_function(p, i);
		const size_t mark = p->out->count;
		bool inner = false;

		if (!row_there(p, i))
			continue;
		if (!function_sites(p, &ROWS[i], &fn, DEEP, &inner)) {
			p->out->count = mark;
			slow[slow_count++] = i;
		} else if (inner) { /* 3 */
			memmove(&p->out->sites[before], &p->out->sites[mark],
				(p->out->count - mark) * sizeof(p->out->sites[0]));
			p->out->count -= mark - before;
			return;
		}
		if (ROWS[i].instead)
			break;
	}
	for (size_t k = 0; k < slow_count; k++)
		row_slow(p, slow[k]);
}

/* 6 */
static void ends_add(struct part *p)
{
	for (size_t i = 0; i < TLSPART_ENDS; i++) {
		const struct elf_range *at = &p->syms->ends[i];
		const struct row row = {ENDS[i].library,
					IMAGE_TLS_WRITE,
					IMAGE_TLS_LENGTH,
					ENDS[i].name,
					{0},
					0,
					NONE,
					false};
		const struct function fn = {.start = at->start,
					    .end = at->end,
					    .asked = {{X86_RDI, NONE, NONE, NONE}, NONE},
					    .check_reg = {NONE, NONE}};
		struct codeflow_reader reader = {.ctx = p, .read = part_read};
		cleanup_codeflow struct codeflow flow = {0};
		struct tlscode_site entry;

		if (at->start && at->end > at->start && at->end - at->start <= FUNCTION_MAX &&
		    codeflow_make(&flow, &reader, fn.start, fn.end) &&
		    tlscode_entry(&flow, &fn.asked, &entry))
			site_add(p, &row, IMAGE_TLS_FORGET, &fn, &entry);
	}
}

/* ---- 7 ---- */

static uint64_t host_end_of(void *ctx, uint64_t start)
{
	return end_of(ctx, start);
}

static uint64_t host_offset_of(void *ctx, uint64_t vaddr)
{
	const struct part *p = ctx;

	return offset_of(p->f, vaddr);
}

static bool host_put(void *ctx, const struct image_tls_site *site)
{
	return site_put(ctx, site);
}

/* false: there are such functions, and no place for a probe in one of them. */
static bool records_add(struct part *p)
{
	const struct codeflow_reader reader = {.ctx = p, .read = part_read};
	const struct recordpart_host host = {.ctx = p,
					     .reader = &reader,
					     .end_of = host_end_of,
					     .offset_of = host_offset_of,
					     .put = host_put};
	const size_t before = p->out->count;
	const struct record_symbols *r = &p->syms->records;

	for (size_t i = 0; i < r->count; i++) {
		if (r->at[i].library == IMAGE_TLS_BORINGSSL && p->syms->at[0].start)
			continue;
		if (recordpart_add(&host, &r->at[i]))
			continue;
		p->out->count = before;
		return false;
	}
	return p->out->count > before;
}

/* ---- 8 ---- */

static const struct row *row_find(const char *name, size_t *n)
{
	for (*n = 0; *n < ROW_COUNT; ++*n)
		if (!strcmp(ROWS[*n].name, name))
			return &ROWS[*n];
	return NULL;
}

static void nameless_note(struct tls_symbols *t, enum nameless_kind kind,
			  const struct elf_range *at)
{
	static const char *const NAMES[] = {
		[NAMELESS_READ] = "SSL_read",           [NAMELESS_READ_EX] = "SSL_read_ex",
		[NAMELESS_WRITE] = "SSL_write",         [NAMELESS_WRITE_EX] = "SSL_write_ex",
		[NAMELESS_WRITE_EX2] = "SSL_write_ex2",
	};
	static const uint8_t SHAPES[] = {
		[NAMELESS_RING_SEAL] = IMAGE_TLS_RING,
		[NAMELESS_RING_OPEN] = IMAGE_TLS_RING,
		[NAMELESS_SEAL_SCATTER] = IMAGE_TLS_SEAL_SCATTER,
		[NAMELESS_SEAL] = IMAGE_TLS_SEAL,
		[NAMELESS_OPEN] = IMAGE_TLS_OPEN,
		[NAMELESS_OPEN_GATHER] = IMAGE_TLS_OPEN_GATHER,
	};
	const bool writes = kind == NAMELESS_RING_SEAL || kind == NAMELESS_SEAL ||
			    kind == NAMELESS_SEAL_SCATTER;
	size_t n;

	if (kind >= NAMELESS_READ) {
		if (row_find(NAMES[kind], &n))
			t->at[n] = *at;
		return;
	}
	if (t->records.count < RECORDPART_FUNCTIONS)
		t->records.at[t->records.count++] = (struct record_function){
			.start = at->start,
			.end = at->end,
			.library = t->rustls || SHAPES[kind] == IMAGE_TLS_RING ?
					   IMAGE_TLS_RUSTLS :
					   IMAGE_TLS_BORINGSSL,
			.operation = writes ? IMAGE_TLS_WRITE : IMAGE_TLS_READ,
			.shape = SHAPES[kind]};
}

static bool is_program(const struct elf_file *f)
{
	uint64_t flags;

	if (f->type == ET_EXEC)
		return true;
	/* a static one that may be anywhere has no interpreter */
	if (elf_dynamic_value(f, DT_FLAGS_1, &flags) && flags & DF_1_PIE)
		return true;
	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_INTERP)
			return true;
	return false;
}

/* A table of symbols with more than those that the file exports. */
static bool has_names(const struct elf_file *f, const struct tls_symbols *t)
{
	const Elf64_Shdr *all = elf_section_by_type(f, SHT_SYMTAB),
			 *exported = elf_section_by_type(f, SHT_DYNSYM);
	bool any = t->rustls || t->records.count;

	for (size_t i = 0; i < ROW_COUNT; i++)
		any |= t->at[i].start != 0;
	return any || (all && (!exported || all->sh_size > exported->sh_size));
}

static int nameless_add(struct part *p, struct tls_symbols *t, struct nameless *found)
{
	int rc;

	if (!(is_program(p->f) || t->module) || has_names(p->f, t))
		return 0;
	rc = nameless_find(p->f, p->rows, found);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	t->rustls = found->rustls;
	for (size_t i = 0; i < found->count; i++)
		nameless_note(t, found->found[i].kind, &found->found[i].at);
	return 0;
}

/* Which library a program without names holds, and nothing in it was found. */
static void nameless_blind(struct part *p, const struct nameless *found)
{
	const bool boringssl = found->boringssl && !found->aead;
	const bool others = !p->out->count && (found->rustls || found->openssl);

	if (!boringssl && !others)
		return;
	site_put(p,
		 &(struct image_tls_site){.library = found->rustls            ? IMAGE_TLS_RUSTLS :
						     found->openssl && others ? IMAGE_TLS_OPENSSL :
										IMAGE_TLS_BORINGSSL,
					  .operation = IMAGE_TLS_READ,
					  .result = IMAGE_TLS_RECORD,
					  .check_value = {IMAGE_TLS_STRIPPED, 0}});
}

static void part_release(struct part *p)
{
	for (unsigned i = 0; i < PAGES; i++)
		free(p->pages[i].bytes);
}

int tlspart_make(struct elf_file *f, const struct tls_symbols *syms, const struct rows *rows,
		 int go_registers, struct tls_part *out)
{
	struct tls_symbols all = *syms;
	struct part p = {.f = f, .syms = &all, .rows = rows, .out = out};
	struct nameless found = {0};

	out->count = 0;
	if (!f->is64 || f->machine != EM_X86_64)
		return -ENOENT;
	p.rc = nameless_add(&p, &all, &found);
	for (size_t from = 0, to; from < ROW_COUNT; from = to) {
		for (to = from; to < ROW_COUNT && ROWS[to].library == ROWS[from].library &&
				ROWS[to].operation == ROWS[from].operation;
		     to++)
			;
		if (ROWS[from].library != IMAGE_TLS_GO || go_registers)
			operation_sites(&p, from, to);
		else if (row_there(&p, from))
			site_put(&p, &(struct image_tls_site){.library = IMAGE_TLS_GO,
							      .operation = ROWS[from].operation,
							      .result = ROWS[from].result});
	}
	if (out->count)
		ends_add(&p);
	if (!records_add(&p) && syms->rustls)
		site_put(&p, &(struct image_tls_site){.library = IMAGE_TLS_RUSTLS,
						      .operation = IMAGE_TLS_READ,
						      .result = IMAGE_TLS_RECORD});
	nameless_blind(&p, &found);
	part_release(&p);
	if (p.rc)
		return p.rc;
	return out->count ? 0 : -ENOENT;
}
