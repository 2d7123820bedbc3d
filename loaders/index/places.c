/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/places.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/elfsyms.h"
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
	return p->asked->whole ? !strcmp(name, p->asked->word) :
				 strstr(name, p->asked->word) != NULL;
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

static void print_functions(struct places *p, struct symset *set)
{
	uint64_t offset;

	if (set->count)
		qsort(set->symbols, set->count, sizeof(*set->symbols), by_address);
	for (size_t i = 0; i < set->count; i++) {
		const struct symset_symbol *s = &set->symbols[i];

		if (s->kind != SYMSET_FUNC && s->kind != SYMSET_FUNC_ANY)
			continue;
		if (!is_asked(p, s->name) || (i && !by_address(s, s - 1)) ||
		    !offset_of(p->f, s->addr, &offset))
			continue;
		strbuf_addf(p->out, "f %llx %llx ", (unsigned long long)offset,
			    (unsigned long long)s->size);
		add_bytes(p, s->addr);
		strbuf_addf(p->out, " %s\n", s->name);
		p->n++;
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

static void print_instruction(struct places *p, const struct symset *set)
{
	uint64_t offset, into;

	for (size_t i = 0; i < set->count && !p->n; i++) {
		const struct symset_symbol *s = &set->symbols[i];

		if (!s->size || s->size > FUNCTION_MOST || !is_plain(s->name) ||
		    !offset_of(p->f, s->addr, &offset) || p->asked->at < offset ||
		    p->asked->at - offset >= s->size)
			continue;
		into = p->asked->at - offset;
		if (!begins(p, s->addr, into))
			continue;
		strbuf_addf(p->out, "i %llx %llx ", (unsigned long long)p->asked->at,
			    (unsigned long long)s->size);
		add_bytes(p, s->addr + into);
		strbuf_addf(p->out, " %s\n", s->name);
		p->n++;
	}
}

static int functions(struct places *p)
{
	struct elf_range *code = NULL;
	size_t code_count = 0;
	struct symset set;
	long n;
	int rc = elf_code_ranges(p->f, &code, &code_count);

	if (rc)
		return rc;
	symset_init(&set, code, code_count);
	n = elfsyms_add(p->f, ELFSYMS_SYMTAB, &set, NULL);
	if (n >= 0)
		n = elfsyms_add(p->f, ELFSYMS_DYNSYM, &set, NULL);
	if (n >= 0 && p->asked->at)
		print_instruction(p, &set);
	else if (n >= 0)
		print_functions(p, &set);
	symset_release(&set);
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
