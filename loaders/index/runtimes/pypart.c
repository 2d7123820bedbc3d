/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/pypart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/runtimes/pylayout.h"
#include "loaders/index/elf/region.h"
#include "loaders/lib/code/x86insn.h"
#include "schema/base/array.h"

#define LOOP     "_PyEval_EvalFrameDefault"
#define LOOP_27  "PyEval_EvalFrameEx"
#define CODE_MAX (1u << 20) /* of one function */
#define TEXT_MAX 24u

/* ---- symbols ---- */

static void part_note(struct py_symbols *py, uint64_t addr, uint64_t size)
{
	for (unsigned i = 0; i < py->part_count; i++)
		if (py->parts[i].start == addr)
			return;
	if (size && py->part_count < PYTHON_RANGES - 1)
		py->parts[py->part_count++] = (struct elf_range){addr, addr + size};
}

static bool is_part(const char *name, const char *of)
{
	size_t n = strlen(of);

	return !strncmp(name, of, n) && name[n] == '.';
}

static void function_note(struct py_symbols *py, const char *name, uint64_t addr, uint64_t size)
{
	const struct elf_range at = {addr, addr + size};

	if (!strcmp(name, LOOP))
		py->loop = at;
	else if (!strcmp(name, LOOP_27))
		py->loop_27 = at;
	else if (!strcmp(name, "Py_GetVersion"))
		py->get_version = at;
	else if (!strcmp(name, "PyInterpreterState_Head"))
		py->interpreter_head = at;
	else if (is_part(name, LOOP) || is_part(name, LOOP_27))
		part_note(py, addr, size);
}

void py_symbols_note(struct py_symbols *py, const char *name, uint64_t addr, uint64_t size)
{
	const struct {
		const char *name;
		uint64_t *at;
	} known[] = {
		{"Py_Version", &py->version},      {"PyCode_Type", &py->code_type},
		{"PyFrame_Type", &py->frame_type}, {"PyUnicode_Type", &py->unicode_type},
		{"PyBytes_Type", &py->bytes_type}, {"PyString_Type", &py->string_type},
	};

	if (name[0] != 'P' && name[0] != '_')
		return;
	if (strncmp(name + (name[0] == '_'), "Py", 2))
		return;
	if (!strcmp(name, "_PyRuntime")) {
		py->runtime = addr;
		py->runtime_size = size;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name, known[i].name))
			*known[i].at = addr;
	function_note(py, name, addr, size);
}

/* ---- code ---- */

/* The next instruction at *at, which goes behind it. false: the end, or no instruction. */
static bool step(const uint8_t *code, size_t len, size_t *at, struct x86insn *i)
{
	if (*at >= len || !x86insn_read(code + *at, len - *at, i))
		return false;
	*at += i->len;
	return true;
}

static const struct rows_span *span_around(const struct rows *r, uint64_t addr)
{
	for (size_t i = 0; i < r->span_count; i++) {
		const struct rows_span *s = &r->spans[i];

		if (s->source == ROWS_EH_FRAME && addr > r->base + s->lo && addr < r->base + s->hi)
			return s;
	}
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct elf_range *)a)->start, y = ((const struct elf_range *)b)->start;

	return x < y ? -1 : x > y;
}

unsigned pypart_jumps(const uint8_t *code, size_t len, uint64_t vaddr, const struct rows *rows,
		      struct elf_range *out, unsigned max)
{
	struct x86insn i;
	unsigned n = 0;

	for (size_t at = 0; n < max && step(code, len, &at, &i);) {
		const uint64_t to = vaddr + at + (uint64_t)i.imm;
		const bool jump =
			(!i.map && i.opcode == 0xe9) || (i.map == 1 && (i.opcode & 0xf0) == 0x80);
		const struct rows_span *s;
		bool known = false;

		if (!jump || (to >= vaddr && to < vaddr + len))
			continue;
		for (unsigned k = 0; k < n; k++)
			known |= to > out[k].start && to < out[k].end;
		s = known ? NULL : span_around(rows, to);
		if (s)
			out[n++] = (struct elf_range){rows->base + s->lo, rows->base + s->hi};
	}
	qsort(out, n, sizeof(*out), by_start);
	return n;
}

/* The address that an instruction takes: LEA of a distance, or a number into a register. 0: none.
 */
static uint64_t address_taken(const struct x86insn *i, uint64_t end)
{
	if (!i->map && i->opcode == 0x8d && !i->mod && (i->rm & 7) == 5)
		return end + (uint64_t)(int64_t)i->disp;
	return !i->map && (i->opcode & 0xf8) == 0xb8 ? (uint64_t)i->imm & UINT32_MAX : 0;
}

uint32_t pypart_version(const uint8_t *code, size_t len, uint64_t vaddr,
			const char *(*text_at)(void *ctx, uint64_t addr), void *ctx)
{
	uint32_t version = 0;
	struct x86insn i;

	for (size_t at = 0; !version && step(code, len, &at, &i);) {
		uint64_t addr = address_taken(&i, vaddr + at);
		const char *text = addr ? text_at(ctx, addr) : NULL;

		version = text ? pylayout_version(text) : 0;
	}
	return version;
}

/* ---- the file ---- */

struct file {
	struct elf_file *elf;
	char text[TEXT_MAX + 1];
	int rc;
};

static const char *text_of_file(void *ctx, uint64_t addr)
{
	struct file *file = ctx;
	cleanup_region struct region r = {0};
	uint64_t left = elf_bytes_at(file->elf, addr);
	int rc = left ? region_read(file->elf, addr, left < TEXT_MAX ? left : TEXT_MAX, &r) :
			-ENOENT;

	if (rc) {
		file->rc = rc == -ENOENT ? file->rc : rc;
		return NULL;
	}
	memcpy(file->text, r.bytes, r.len);
	file->text[r.len] = 0;
	return file->text;
}

static int function_read(struct elf_file *f, const struct elf_range *at, struct region *out)
{
	uint64_t size = at->end - at->start;

	return at->start && at->end > at->start ?
		       region_read(f, at->start, size < CODE_MAX ? size : CODE_MAX, out) :
		       -ENOENT;
}

static int version_find(struct elf_file *f, const struct py_symbols *py, uint32_t *version)
{
	cleanup_region struct region r = {0};
	struct file file = {.elf = f};
	int rc = py->version ? region_read(f, py->version, 8, &r) :
			       function_read(f, &py->get_version, &r);

	if (rc)
		return rc;
	*version = py->version ?
			   (uint32_t)region_word(&r, 0, 8) :
			   pypart_version(r.bytes, (size_t)r.len, r.vaddr, text_of_file, &file);
	return file.rc;
}

/* The variable that `return interp_head` loads. */
static int interpreters_by_code(struct elf_file *f, const struct py_symbols *py, uint64_t *addr)
{
	cleanup_region struct region r = {0};
	struct x86insn i;
	size_t at = 0;
	int rc = function_read(f, &py->interpreter_head, &r);

	while (!rc && step(r.bytes, (size_t)r.len, &at, &i)) {
		if (i.map || i.opcode != 0x8b || i.mod || (i.rm & 7) != 5 || !(i.rex & 8))
			continue;
		*addr = r.vaddr + at + (uint64_t)(int64_t)i.disp;
		return 0;
	}
	return rc ? rc : -ENOENT;
}

static int layout_find(struct elf_file *f, const struct py_symbols *py, struct python_layout *l)
{
	cleanup_region struct region r = {0};
	uint32_t version = 0;
	uint64_t at = 0, size = py->runtime_size;
	int rc = version_find(f, py, &version);

	if (rc)
		return rc;
	if (pylayout_of_version(version, l, &at)) {
		rc = at ? (py->runtime ? 0 : -ENOENT) : interpreters_by_code(f, py, &at);
		l->interpreters = py->runtime + at;
		l->gil += l->gil ? py->runtime : 0;
		return rc;
	}
	rc = py->runtime ?
		     region_read(f, py->runtime,
				 size < PYLAYOUT_OFFSETS_SIZE ? size : PYLAYOUT_OFFSETS_SIZE, &r) :
		     -ENOENT;
	if (rc)
		return rc;
	if (!pylayout_of_offsets(r.bytes, (size_t)r.len, l, &at) ||
	    l->version >> 16 != version >> 16)
		return -ENOENT;
	l->interpreters = py->runtime + at;
	return 0;
}

/* ---- the loop ---- */

static void range_add(struct python_layout *l, unsigned *n, struct elf_range r)
{
	for (unsigned i = 0; i < *n; i++)
		if (l->loop_start[i] == r.start)
			return;
	if (*n >= PYTHON_RANGES || r.start >= r.end)
		return;
	l->loop_start[*n] = r.start;
	l->loop_end[(*n)++] = r.end;
}

static int loop_find(struct elf_file *f, const struct py_symbols *py, const struct rows *rows,
		     struct python_layout *l)
{
	const struct elf_range loop = l->version >> 24 == 2 ? py->loop_27 : py->loop;
	struct elf_range jumps[PYTHON_RANGES];
	cleanup_region struct region r = {0};
	unsigned n = 0, found = 0;
	int rc = function_read(f, &loop, &r);

	if (rc)
		return rc;
	range_add(l, &n, loop);
	for (unsigned i = 0; i < py->part_count; i++)
		range_add(l, &n, py->parts[i]);
	if (rows)
		found = pypart_jumps(r.bytes, (size_t)r.len, r.vaddr, rows, jumps, PYTHON_RANGES);
	for (unsigned i = 0; i < found; i++)
		range_add(l, &n, jumps[i]);
	return 0;
}

int pypart_make(struct elf_file *f, const struct py_symbols *py, const struct rows *rows,
		struct python_layout *out)
{
	struct python_layout l = {0};
	int rc;

	if (!f->is64 || f->machine != EM_X86_64 || !py->code_type || !py->frame_type ||
	    !(py->bytes_type || py->string_type))
		return -ENOENT;
	rc = layout_find(f, py, &l);
	if (!rc && l.shape == PYTHON_OBJECTS)
		rc = loop_find(f, py, rows, &l);
	if (rc)
		return rc;
	l.code_type = py->code_type;
	l.frame_type = py->frame_type;
	l.text_type = py->string_type ? py->string_type : py->unicode_type;
	l.bytes_type = py->string_type ? py->string_type : py->bytes_type;
	*out = l;
	return 0;
}
