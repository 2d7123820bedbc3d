/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/rubypart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/runtimes/pypart.h"
#include "loaders/index/elf/region.h"
#include "loaders/lib/code/x86insn.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define FUNCTION_MAX  (1u << 20)
#define CONSTANTS_MAX (16u << 20)
#define VERSION_MAX   16u
#define HELPER_BYTES  512u /* of a function without a symbol, which has no known end */
#define RDI           7
#define LAST_OP_MIN   150 /* of tLAST_OP_ID, in any version */
#define LAST_OP_MAX   250

static const struct row {
	const char *begins;
	struct ruby_layout l;
} rows_of[] = {
	{"2.7.",
	 {.version = 0x0207,
	  .vm_threads = 312,
	  .thread_id = 72,
	  .thread_ec = 32,
	  .ec_thread = 56,
	  .frame_size = 56,
	  .lines = 120,
	  .lines_count = 136,
	  .lines_index = 144,
	  .line_size = 8,
	  .text_short = 16,
	  .last_op = 168}},
	{"3.1.",
	 {.version = 0x0301,
	  .thread_ec = 40,
	  .ec_thread = 48,
	  .frame_size = 64,
	  .lines = 120,
	  .lines_count = 136,
	  .lines_index = 144,
	  .line_size = 12,
	  .text_short = 16,
	  .last_op = 169}},
	{"3.3.",
	 {.version = 0x0303,
	  .thread_ec = 48,
	  .ec_thread = 48,
	  .frame_size = 56,
	  .class_path = 152,
	  .lines = 112,
	  .lines_count = 128,
	  .lines_index = 136,
	  .line_size = 12,
	  .text_length = 16,
	  .text_short = 24,
	  .last_op = 169}},
	{"3.4.",
	 {.version = 0x0304,
	  .thread_ec = 48,
	  .ec_thread = 48,
	  .frame_size = 56,
	  .class_path = 152,
	  .singleton = 1,
	  .lines = 112,
	  .lines_count = 128,
	  .lines_index = 136,
	  .line_size = 12,
	  .text_length = 16,
	  .text_short = 24,
	  .last_op = 170}},
	{"4.0.",
	 {.version = 0x0400,
	  .thread_ec = 48,
	  .ec_thread = 48,
	  .frame_size = 56,
	  .lines = 112,
	  .lines_count = 128,
	  .lines_index = 136,
	  .line_size = 12,
	  .text_length = 16,
	  .text_short = 24,
	  .last_op = 170,
	  .lines_checked = 1}},
};

bool rubypart_layout(const char *version, struct ruby_layout *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows_of); i++) {
		size_t n = strlen(rows_of[i].begins);

		if (strncmp(version, rows_of[i].begins, n) || version[n] < '0' || version[n] > '9')
			continue;
		*out = rows_of[i].l;
		out->format = RUBY_FORMAT;
		return true;
	}
	return false;
}

/* ---- code ---- */

static bool step(const uint8_t *code, size_t len, size_t *at, struct x86insn *i)
{
	if (*at >= len || !x86insn_read(code + *at, len - *at, i))
		return false;
	*at += i->len;
	return true;
}

static bool is_relative(const struct x86insn *i)
{
	return i->has_modrm && !i->mod && (i->rm & 7) == 5;
}

/* mov %fs:offset, register: prefix 64, no base, no index. */
static bool is_from_fs(const uint8_t *insn, const struct x86insn *i)
{
	return insn[0] == 0x64 && !i->map && i->opcode == 0x8b && i->has_modrm && !i->mod &&
	       (i->rm & 7) == 4 && i->sib_base == 5 && i->sib_index == 4;
}

bool rubypart_local(const uint8_t *code, size_t len, uint64_t vaddr, struct ruby_layout *out)
{
	struct x86insn i;
	uint64_t slot = 0;

	for (size_t at = 0, from = 0; step(code, len, &at, &i); from = at) {
		if (is_from_fs(code + from, &i) && i.disp) {
			out->tls_offset = i.disp;
			return true;
		}
		if (!i.map && i.opcode == 0x8d && is_relative(&i) && i.reg == RDI)
			slot = vaddr + at + (uint64_t)(int64_t)i.disp;
		if (!i.map && i.opcode == 0xe8 && slot) {
			out->tls_slot = slot;
			return true;
		}
		if (!i.map && (i.opcode == 0xc3 || i.opcode == 0xe9 || i.opcode == 0xe8))
			return false;
	}
	return false;
}

uint16_t rubypart_last_op(const uint8_t *code, size_t len)
{
	struct x86insn i;

	for (size_t at = 0; step(code, len, &at, &i);) {
		bool compares = !i.map && (i.opcode == 0x3d || (i.opcode == 0x81 && i.has_modrm &&
								i.mod == 3 && (i.reg & 7) == 7));

		if (compares && i.imm >= LAST_OP_MIN && i.imm <= LAST_OP_MAX)
			return (uint16_t)i.imm;
		if (!i.map && (i.opcode == 0xc3 || i.opcode == 0xe9 || i.opcode == 0xe8))
			return 0;
	}
	return 0;
}

size_t rubypart_addresses(const uint8_t *code, size_t len, uint64_t vaddr,
			  uint64_t out[RUBYPART_ADDRESSES], size_t n)
{
	struct x86insn i;

	for (size_t at = 0; n < RUBYPART_ADDRESSES && step(code, len, &at, &i);)
		if (is_relative(&i))
			out[n++] = vaddr + at + (uint64_t)(int64_t)i.disp;
	return n;
}

uint64_t rubypart_pair(const uint64_t *addresses, size_t n)
{
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			if (addresses[b] == addresses[a] + 16)
				return addresses[a];
	return 0;
}

/* Where the function ends in a jump to another one. 0: it does not. */
static uint64_t tail_of(const uint8_t *code, size_t len, uint64_t vaddr)
{
	uint64_t to = 0;
	struct x86insn i;

	for (size_t at = 0; step(code, len, &at, &i);)
		if (!i.map && i.opcode == 0xe9)
			to = vaddr + at + (uint64_t)i.imm;
	return to;
}

/* ---- the loop ---- */

/* The functions of .eh_frame, sorted. */
struct spans {
	struct elf_range *at; /* own */
	size_t n;
};

static void spans_release(struct spans *s)
{
	free(s->at);
}
#define cleanup_spans __attribute__((cleanup(spans_release)))

static int by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct elf_range *)a)->start, y = ((const struct elf_range *)b)->start;

	return x < y ? -1 : x > y;
}

static struct spans spans_make(const struct rows *r)
{
	struct spans s = {.at = mem_array(r->span_count + 1, sizeof(*s.at))};

	for (size_t i = 0; i < r->span_count; i++)
		if (r->spans[i].source == ROWS_EH_FRAME)
			s.at[s.n++] = (struct elf_range){r->base + r->spans[i].lo,
							 r->base + r->spans[i].hi};
	qsort(s.at, s.n, sizeof(*s.at), by_start);
	return s;
}

static const struct elf_range *span_of(const struct spans *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (addr < s->at[mid].start)
			hi = mid;
		else if (addr >= s->at[mid].end)
			lo = mid + 1;
		else
			return &s->at[mid];
	}
	return NULL;
}

bool rubypart_labels(const uint64_t *words, size_t n, const struct rows *rows,
		     struct elf_range *out)
{
	cleanup_spans struct spans spans = spans_make(rows);
	size_t best = RUBYPART_LABELS - 1, run = 0;
	const struct elf_range *in = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!in || words[i] < in->start || words[i] >= in->end) {
			in = span_of(&spans, words[i]);
			run = 0;
		}
		run += in != NULL;
		if (run <= best)
			continue;
		best = run;
		*out = *in;
	}
	return best >= RUBYPART_LABELS;
}

/* Constants; not what the dynamic loader fills in, which begins as a run of addresses of stubs. */
static bool is_constant(const struct elf_file *f, const Elf64_Shdr *s)
{
	const char *name = f->names && s->sh_name < f->names_size ? f->names + s->sh_name : "";

	return s->sh_type == SHT_PROGBITS && s->sh_flags & SHF_ALLOC &&
	       !(s->sh_flags & SHF_EXECINSTR) && s->sh_size >= 8 && !(s->sh_addr & 7) &&
	       strncmp(name, ".got", 4);
}

static int labels_find(struct elf_file *f, const struct rows *rows, struct elf_range *out)
{
	for (size_t i = 0; i < f->section_count; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		cleanup_region struct region r = {0};
		cleanup_free uint64_t *words = NULL;
		size_t n = 0;
		int rc;

		if (!is_constant(f, s))
			continue;
		rc = region_read(f, s->sh_addr,
				 s->sh_size < CONSTANTS_MAX ? s->sh_size : CONSTANTS_MAX, &r);
		if (rc && rc != -ENOENT)
			return rc;
		words = rc ? NULL : mem_alloc((size_t)r.len + 8);
		for (; words && 8 * (n + 1) <= r.len; n++)
			words[n] = region_word(&r, 8 * n, 8);
		if (words && rubypart_labels(words, n, rows, out))
			return 0;
	}
	return -ENOENT;
}

static int loop_find(struct elf_file *f, const struct rows *rows, struct ruby_layout *l)
{
	struct elf_range loop = {0}, jumps[RUBY_RANGES - 1];
	cleanup_region struct region r = {0};
	unsigned found;
	int rc = rows ? labels_find(f, rows, &loop) : -ENOENT;

	if (!rc)
		rc = region_read(f, loop.start,
				 loop.end - loop.start < FUNCTION_MAX ? loop.end - loop.start :
									FUNCTION_MAX,
				 &r);
	if (rc)
		return rc;
	l->loop_start[0] = loop.start;
	l->loop_end[0] = loop.end;
	found = pypart_jumps(r.bytes, (size_t)r.len, r.vaddr, rows, jumps, RUBY_RANGES - 1);
	for (unsigned i = 0; i < found; i++) {
		l->loop_start[i + 1] = jumps[i].start;
		l->loop_end[i + 1] = jumps[i].end;
	}
	return 0;
}

/* ---- the file ---- */

static int function_read(struct elf_file *f, const struct elf_range *at, struct region *out)
{
	uint64_t size = at->end - at->start;

	return at->end > at->start ?
		       region_read(f, at->start, size < FUNCTION_MAX ? size : FUNCTION_MAX, out) :
		       -ENOENT;
}

static int version_find(struct elf_file *f, const struct runsyms *syms, struct ruby_layout *l)
{
	const uint64_t at = runsyms_addr(syms, RUNSYM_RUBY_VERSION), left = elf_bytes_at(f, at);
	cleanup_region struct region r = {0};
	char text[VERSION_MAX + 1] = "";
	int rc = left ? region_read(f, at, left < VERSION_MAX ? left : VERSION_MAX, &r) : -ENOENT;

	if (rc)
		return rc;
	memcpy(text, r.bytes, (size_t)r.len);
	return rubypart_layout(text, l) ? 0 : -ENOENT;
}

static int context_find(struct elf_file *f, const struct runsyms *syms, struct ruby_layout *l)
{
	cleanup_region struct region r = {0};
	int rc;

	if (l->vm_threads) {
		l->vm = runsyms_addr(syms, RUNSYM_RUBY_VM);
		return l->vm ? 0 : -ENOENT;
	}
	rc = function_read(f, &syms->at[RUNSYM_RUBY_THREAD], &r);
	if (rc)
		return rc;
	return rubypart_local(r.bytes, (size_t)r.len, r.vaddr, l) ? 0 : -ENOENT;
}

/* In rb_id2str itself, or in what it goes on with. Where it is not found, functions of C have no
 * names. */
static int symbols_find(struct elf_file *f, const struct runsyms *syms, const struct rows *rows,
			struct ruby_layout *l)
{
	cleanup_region struct region r = {0};
	cleanup_region struct region next = {0};
	cleanup_spans struct spans spans = {0};
	const struct elf_range *span;
	uint64_t used[RUBYPART_ADDRESSES], tail, size;
	uint16_t last_op;
	size_t n;
	int rc = function_read(f, &syms->at[RUNSYM_RUBY_ID], &r);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	last_op = rubypart_last_op(r.bytes, (size_t)r.len);
	if (last_op)
		l->last_op = last_op;
	n = rubypart_addresses(r.bytes, (size_t)r.len, r.vaddr, used, 0);
	tail = tail_of(r.bytes, (size_t)r.len, r.vaddr);
	spans = spans_make(rows);
	span = tail ? span_of(&spans, tail) : NULL;
	size = span ? span->end - tail : 0;
	rc = size ? region_read(f, tail, size < HELPER_BYTES ? size : HELPER_BYTES, &next) : 0;
	if (!rc)
		n = rubypart_addresses(next.bytes, (size_t)next.len, next.vaddr, used, n);
	l->symbols = rubypart_pair(used, n);
	return rc == -ENOENT ? 0 : rc;
}

int rubypart_make(struct elf_file *f, const struct runsyms *syms, const struct rows *rows,
		  struct ruby_layout *out)
{
	struct ruby_layout l = {0};
	int rc;

	if (!f->is64 || f->machine != EM_X86_64 || !runsyms_addr(syms, RUNSYM_RUBY_VERSION) ||
	    !runsyms_addr(syms, RUNSYM_RUBY_THREAD))
		return -ENOENT;
	rc = version_find(f, syms, &l);
	if (!rc)
		rc = context_find(f, syms, &l);
	if (!rc)
		rc = loop_find(f, rows, &l);
	if (!rc)
		rc = symbols_find(f, syms, rows, &l);
	if (!rc)
		*out = l;
	return rc;
}
