/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/places.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/code/callsites.h"
#include "loaders/index/elf/elffile.h"
#include "loaders/index/elfsyms.h"
#include "loaders/index/go/gotable.h"
#include "loaders/index/unwind/unwind.h"
#include "loaders/lib/code/x86insn.h"
#include "schema/base/cleanup.h"

#define CODE_BYTES    16
#define NOTE_STAPSDT  3
#define FUNCTION_MOST (1u << 20)

struct places {
	struct elf_file *f;
	const struct places_asked *asked;
	struct strbuf *out;
	size_t n;
	struct symset set;
	struct go_table go;   /* none: .bytes NULL */
	struct unwind unwind; /* where calls or offsets are asked for */
};

/* An address -> its place in the file; false: none of its bytes are there. */
static bool offset_of(const struct elf_file *f, uint64_t addr, uint64_t *offset)
{
	for (size_t i = 0; i < f->segment_count; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type != PT_LOAD || addr < p->p_vaddr || addr - p->p_vaddr >= p->p_filesz)
			continue;
		*offset = addr - p->p_vaddr + p->p_offset;
		return true;
	}
	return false;
}

static bool is_plain(const char *name)
{
	for (; *name; name++)
		if (!isgraph((unsigned char)*name) && !((unsigned char)*name & 0x80))
			return false;
	return true;
}

static bool is_asked(const struct places *p, const char *name)
{
	if (!*name || !is_plain(name) || p->n >= PLACES_MOST)
		return false;
	if (!p->asked->whole)
		return strstr(name, p->asked->word) != NULL;
	if (strchr(p->asked->word, '*') && !strstr(p->asked->word, "(*")) /* Go's (*T) is no glob */
		return !fnmatch(p->asked->word, name, 0);
	return !strcmp(name, p->asked->word);
}

static void add_bytes(struct places *p, uint64_t addr)
{
	uint64_t there = elf_bytes_at(p->f, addr);
	cleanup_free void *code = NULL;
	size_t n = there < CODE_BYTES ? (size_t)there : CODE_BYTES;

	if (!n || elf_read_at(p->f, addr, n, &code)) {
		strbuf_addch(p->out, '-');
		return;
	}
	for (size_t i = 0; i < n; i++)
		strbuf_addf(p->out, "%02x", ((const uint8_t *)code)[i]);
}

/* ---- functions ---- */

static int by_address(const void *a, const void *b)
{
	const struct symset_symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_function(const struct symset_symbol *s)
{
	return s->kind == SYMSET_FUNC || s->kind == SYMSET_FUNC_ANY || s->kind == SYMSET_GO;
}

/* Where the function ends that begins there, by its symbol, Go's table or .eh_frame. 0: none. */
static uint64_t end_of(void *ctx, uint64_t start)
{
	const struct places *p = ctx;
	const struct rows *r = &p->unwind.rows;

	for (size_t i = 0; i < p->set.count; i++)
		if (p->set.symbols[i].addr == start && p->set.symbols[i].size &&
		    is_function(&p->set.symbols[i]))
			return start + p->set.symbols[i].size;
	for (size_t i = 0; p->unwind.on && i < r->span_count; i++)
		if (r->spans[i].source == ROWS_EH_FRAME && r->base + r->spans[i].lo == start)
			return r->base + r->spans[i].hi;
	return 0;
}

static size_t code_read(void *ctx, uint64_t vaddr, uint8_t *out)
{
	const struct places *p = ctx;
	uint64_t there = elf_bytes_at(p->f, vaddr);
	cleanup_free void *code = NULL;
	size_t n = there < X86INSN_MAX ? (size_t)there : X86INSN_MAX;

	if (!n || elf_read_at(p->f, vaddr, n, &code))
		return 0;
	memcpy(out, code, n);
	return n;
}

static void print_site(struct places *p, const struct callsite *c, const char *name)
{
	uint64_t offset;

	if (!offset_of(p->f, c->at, &offset))
		return;
	strbuf_addf(p->out, "c %llx 0 ", (unsigned long long)offset);
	for (size_t i = 0; i < c->len; i++)
		strbuf_addf(p->out, "%02x", c->bytes[i]);
	strbuf_addf(p->out, " %s %d %d %u %d %u %u", name, c->begins, c->others, c->base, c->frame,
		    c->when, c->condition);
	for (size_t i = 0; i < 2; i++)
		strbuf_addf(p->out, " %u %u %u %d", c->value[i].kind, c->value[i].reg,
			    c->value[i].bytes, c->value[i].at);
	strbuf_addch(p->out, '\n');
}

static void print_calls(struct places *p, uint64_t start, uint64_t size, const char *name, bool go)
{
	const struct codeflow_reader reader = {.ctx = p, .read = code_read};
	const struct callsites_host host = {.ctx = p, .reader = &reader, .end_of = end_of};
	struct callsites calls;
	uint64_t end = size ? start + size : end_of(p, start);

	if (!end || end - start > FUNCTION_MOST || callsites_find(&host, start, end, go, &calls)) {
		strbuf_addf(p->out, "x 0 ffffffff - %s\n", name);
		return;
	}
	for (size_t i = 0; i < calls.n; i++)
		print_site(p, &calls.at[i], name);
	strbuf_addf(p->out, "x 0 %x - %s\n", calls.unseen, name);
}

static void print_function(struct places *p, const struct symset_symbol *s)
{
	uint64_t offset;

	if (!offset_of(p->f, s->addr, &offset))
		return;
	strbuf_addf(p->out, "%c %llx %llx ", s->kind == SYMSET_GO ? 'g' : 'f',
		    (unsigned long long)offset, (unsigned long long)s->size);
	add_bytes(p, s->addr);
	strbuf_addf(p->out, " %s\n", s->name);
	p->n++;
	if (p->asked->calls)
		print_calls(p, s->addr, s->size, s->name, s->kind == SYMSET_GO);
}

static void print_functions(struct places *p)
{
	struct symset *set = &p->set;

	if (set->count)
		qsort(set->symbols, set->count, sizeof(*set->symbols), by_address);
	for (size_t i = 0; i < set->count; i++) {
		const struct symset_symbol *s = &set->symbols[i];

		if (!is_function(s) || !is_asked(p, s->name) || (i && !by_address(s, s - 1)))
			continue;
		print_function(p, s);
	}
}

/* Does an instruction begin `into` bytes behind this address? */
static bool begins(struct places *p, uint64_t addr, uint64_t into)
{
	uint64_t there = elf_bytes_at(p->f, addr), at = 0;
	size_t len = into + X86INSN_MAX < there ? (size_t)into + X86INSN_MAX : (size_t)there;
	cleanup_free void *code = NULL;
	struct x86insn insn;

	if (into >= len || elf_read_at(p->f, addr, len, &code))
		return false;
	while (at < into && x86insn_read((const uint8_t *)code + at, len - at, &insn))
		at += insn.len;
	return at == into;
}

/* Prints what was asked for by its offset, if it is in this function. */
static bool print_within(struct places *p, const struct symset_symbol *s)
{
	uint64_t offset, into;

	if (!s->size || s->size > FUNCTION_MOST || !is_plain(s->name) ||
	    !offset_of(p->f, s->addr, &offset) || p->asked->at < offset ||
	    p->asked->at - offset >= s->size)
		return false;
	into = p->asked->at - offset;
	if (!into && p->asked->calls) {
		print_function(p, s);
		return true;
	}
	if (p->asked->calls || !begins(p, s->addr, into))
		return false;
	strbuf_addf(p->out, "i %llx %llx ", (unsigned long long)p->asked->at,
		    (unsigned long long)s->size);
	add_bytes(p, s->addr + into);
	strbuf_addf(p->out, " %s\n", s->name);
	p->n++;
	return true;
}

static void print_instruction(struct places *p)
{
	const struct rows *r = &p->unwind.rows;
	bool found = false;

	for (size_t i = 0; i < p->set.count && !found; i++)
		found = print_within(p, &p->set.symbols[i]);
	for (size_t i = 0; p->unwind.on && i < r->span_count && !found; i++) {
		const struct symset_symbol s = {.addr = r->base + r->spans[i].lo,
						.size = r->spans[i].hi - r->spans[i].lo,
						.name = "-",
						.kind = SYMSET_FUNC};

		found = r->spans[i].source == ROWS_EH_FRAME && print_within(p, &s);
	}
}

static int go_functions(struct places *p, const struct go_symbols *known)
{
	int rc = go_table_find(p->f, known, &p->go);

	for (uint32_t i = 0; !rc && i < p->go.tab.func_count; i++) {
		struct pclntab_func f;

		if (pclntab_func(&p->go.tab, p->go.text, i, &f))
			rc = symset_add(&p->set, &(struct symset_symbol){.addr = f.start,
									 .size = f.end - f.start,
									 .name = f.name,
									 .kind = SYMSET_GO});
	}
	return rc == -ENOENT || rc == -ENOSPC ? 0 : rc;
}

static int functions(struct places *p)
{
	struct elf_range *code = NULL;
	struct elfsyms_noted noted = {0};
	size_t code_count = 0;
	long n;
	int rc = elf_code_ranges(p->f, &code, &code_count);

	if (rc)
		return rc;
	symset_init(&p->set, code, code_count);
	n = elfsyms_add(p->f, ELFSYMS_SYMTAB, &p->set, &noted);
	if (n >= 0)
		n = elfsyms_add(p->f, ELFSYMS_DYNSYM, &p->set, NULL);
	if (n >= 0)
		n = go_functions(p, &noted.go);
	if (n >= 0 && (p->asked->at || p->asked->calls))
		n = unwind_init(&p->unwind, p->f);
	if (n >= 0 && p->asked->at)
		print_instruction(p);
	else if (n >= 0)
		print_functions(p);
	if (p->asked->at || p->asked->calls)
		unwind_release(&p->unwind);
	go_table_release(&p->go);
	symset_release(&p->set);
	return n < 0 ? (int)n : 0;
}

/* ---- USDT ---- */

/* The string that begins here and its NUL lie within `len` bytes; NULL: they do not. */
static const char *string_at(const char *data, size_t len, size_t *at)
{
	const char *text = data + *at, *end = *at < len ? memchr(text, 0, len - *at) : NULL;

	if (!end)
		return NULL;
	*at += (size_t)(end - text) + 1;
	return text;
}

static void one_probe(struct places *p, const char *desc, size_t len, uint64_t base)
{
	uint64_t word[3], pc = 0, semaphore = 0, moved;
	const char *provider, *name, *args;
	size_t at = sizeof(word);

	if (len < sizeof(word))
		return;
	memcpy(word, desc, sizeof(word));
	provider = string_at(desc, len, &at);
	name = provider ? string_at(desc, len, &at) : NULL;
	args = name ? string_at(desc, len, &at) : NULL;
	moved = base ? base - word[1] : 0;
	if (!args || !*provider || !is_plain(provider) || !is_asked(p, name) ||
	    !offset_of(p->f, word[0] + moved, &pc) ||
	    (word[2] && !offset_of(p->f, word[2] + moved, &semaphore)))
		return;
	strbuf_addf(p->out, "u %llx %llx ", (unsigned long long)pc, (unsigned long long)semaphore);
	add_bytes(p, word[0] + moved);
	strbuf_addf(p->out, " %s %s ", provider, name);
	for (; *args; args++)
		strbuf_addch(p->out, (char)(isprint((unsigned char)*args) ? *args : '?'));
	strbuf_addch(p->out, '\n');
	p->n++;
}

static size_t padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

static void notes(struct places *p, const char *data, size_t len, uint64_t base)
{
	for (size_t at = 0; len - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr h;
		size_t name, desc;

		memcpy(&h, data + at, sizeof(h));
		at += sizeof(h);
		name = padded(h.n_namesz);
		desc = padded(h.n_descsz);
		if (name > len - at || desc > len - at - name)
			return;
		if (h.n_type == NOTE_STAPSDT && h.n_namesz == sizeof("stapsdt") &&
		    !memcmp(data + at, "stapsdt", sizeof("stapsdt")))
			one_probe(p, data + at + name, h.n_descsz, base);
		at += name + desc;
	}
}

static int probes(struct places *p)
{
	const Elf64_Shdr *s = elf_section_by_name(p->f, ".note.stapsdt"),
			 *b = elf_section_by_name(p->f, ".stapsdt.base");
	cleanup_free void *data = NULL;
	int rc;

	if (!s || !p->f->is64)
		return 0;
	rc = elf_section_read(p->f, s, &data);
	if (!rc)
		notes(p, data, s->sh_size, b ? b->sh_addr : 0);
	return rc;
}

int places_read(struct source *src, const struct places_asked *asked, struct strbuf *out,
		struct err *e)
{
	struct elf_file f;
	struct places p = {.f = &f, .asked = asked, .out = out};
	int rc = elf_open(&f, src, e);

	if (rc)
		return rc;
	rc = asked->at ? 0 : probes(&p);
	if (!rc)
		rc = functions(&p);
	elf_release(&f);
	return !rc ? 0 :
		     err_set(e, rc, EXIT_RUNTIME, "its tables cannot be read: %s", strerror(-rc));
}
