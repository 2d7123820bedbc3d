/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/phppart.h"

#include <errno.h>
#include <string.h>

#include "loaders/index/runtimes/pypart.h"
#include "loaders/index/elf/region.h"
#include "schema/base/array.h"

#define LOOP_MAX      (1u << 20)
#define CONSTANTS_MAX (64u << 20)
#define BUILD         "API"
#define BUILD_END     ",NTS"
#define DIGITS        8

static const struct row {
	uint32_t interface;
	struct php_layout l;
} rows_of[] = {
	{20190902,
	 {.version = 0x0704,
	  .current = 488,
	  .code = 64,
	  .code_count = 60,
	  .file = 136,
	  .generator_parent = 160,
	  .generator_frame = 64}},
	{20200930, {.version = 0x0800, .current = 488, .code = 72, .code_count = 68, .file = 144}},
	{20210902, {.version = 0x0801, .current = 488, .code = 72, .code_count = 68, .file = 144}},
	{20220829,
	 {.version = 0x0802,
	  .current = 488,
	  .code = 88,
	  .code_count = 80,
	  .file = 152,
	  .generator_parent = 152,
	  .generator_frame = 56}},
	{20230831,
	 {.version = 0x0803,
	  .current = 488,
	  .code = 80,
	  .code_count = 76,
	  .file = 144,
	  .generator_parent = 152,
	  .generator_frame = 56}},
	{20240924,
	 {.version = 0x0804,
	  .current = 488,
	  .code = 104,
	  .code_count = 96,
	  .file = 168,
	  .generator_parent = 152,
	  .generator_frame = 56}},
	{20250925,
	 {.version = 0x0805,
	  .current = 512,
	  .code = 104,
	  .code_count = 96,
	  .file = 168,
	  .generator_parent = 152,
	  .generator_frame = 56}},
	{20260924,
	 {.version = 0x0806,
	  .current = 512,
	  .code = 104,
	  .code_count = 96,
	  .file = 168,
	  .generator_parent = 152,
	  .generator_frame = 56}},
};

bool phppart_layout(uint32_t interface, struct php_layout *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows_of); i++) {
		if (rows_of[i].interface != interface)
			continue;
		*out = rows_of[i].l;
		out->format = PHP_FORMAT;
		return true;
	}
	return false;
}

/* "API20220829,NTS": nothing behind it, which would say how else it was built. 0: not that. */
static uint32_t interface_at(const uint8_t *s, size_t left)
{
	const size_t head = strlen(BUILD), end = strlen(BUILD_END);
	uint32_t n = 0;

	if (left < head + DIGITS + end + 1 || memcmp(s, BUILD, head) ||
	    memcmp(s + head + DIGITS, BUILD_END, end + 1))
		return 0;
	for (size_t i = head; i < head + DIGITS; i++) {
		if (s[i] < '0' || s[i] > '9')
			return 0;
		n = n * 10 + (uint32_t)(s[i] - '0');
	}
	return n;
}

uint32_t phppart_interface(const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		const uint8_t *a = memchr(bytes + at, BUILD[0], len - at);
		uint32_t n = a ? interface_at(a, len - (size_t)(a - bytes)) : 0;

		if (n || !a)
			return n;
		at = (size_t)(a - bytes) + 1;
	}
	return 0;
}

static int interface_find(struct elf_file *f, uint32_t *interface)
{
	for (size_t i = 0; i < f->section_count; i++) {
		const Elf64_Shdr *s = &f->sections[i];
		cleanup_region struct region r = {0};
		int rc;

		if (s->sh_type != SHT_PROGBITS || !(s->sh_flags & SHF_ALLOC) ||
		    s->sh_flags & (SHF_EXECINSTR | SHF_WRITE) || !s->sh_size)
			continue;
		rc = region_read(f, s->sh_addr,
				 s->sh_size < CONSTANTS_MAX ? s->sh_size : CONSTANTS_MAX, &r);
		if (rc == -ENOENT)
			continue;
		if (rc)
			return rc;
		*interface = phppart_interface(r.bytes, (size_t)r.len);
		if (*interface)
			return 0;
	}
	return -ENOENT;
}

static void range_add(struct php_layout *l, unsigned *n, struct elf_range r)
{
	for (unsigned i = 0; i < *n; i++)
		if (l->loop_start[i] == r.start)
			return;
	if (*n >= PHP_RANGES || r.start >= r.end)
		return;
	l->loop_start[*n] = r.start;
	l->loop_end[(*n)++] = r.end;
}

static int loop_find(struct elf_file *f, const struct runsyms *syms, const struct rows *rows,
		     struct php_layout *l)
{
	const struct elf_range loop = syms->at[RUNSYM_PHP_LOOP];
	uint64_t size = loop.end - loop.start;
	struct elf_range jumps[PHP_RANGES];
	cleanup_region struct region r = {0};
	unsigned n = 0, found = 0;
	int rc = loop.end > loop.start ?
			 region_read(f, loop.start, size < LOOP_MAX ? size : LOOP_MAX, &r) :
			 -ENOENT;

	if (rc)
		return rc;
	range_add(l, &n, loop);
	for (unsigned i = 0; i < syms->part_count; i++)
		range_add(l, &n, syms->parts[i]);
	if (rows)
		found = pypart_jumps(r.bytes, (size_t)r.len, r.vaddr, rows, jumps, PHP_RANGES);
	for (unsigned i = 0; i < found; i++)
		range_add(l, &n, jumps[i]);
	return 0;
}

/* It asks for a dynamic loader, or needs none at a fixed address; a library does neither. */
static bool is_program(const struct elf_file *f)
{
	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_INTERP)
			return true;
	return f->type == ET_EXEC;
}

int phppart_make(struct elf_file *f, const struct runsyms *syms, const struct rows *rows,
		 struct php_layout *out)
{
	struct php_layout l = {0};
	uint32_t interface = 0;
	int rc;

	if (!f->is64 || f->machine != EM_X86_64 || !runsyms_addr(syms, RUNSYM_PHP_GLOBALS) ||
	    !runsyms_addr(syms, RUNSYM_PHP_LOOP))
		return -ENOENT;
	rc = interface_find(f, &interface);
	if (!rc && !phppart_layout(interface, &l))
		rc = -ENOENT;
	if (!rc)
		rc = loop_find(f, syms, rows, &l);
	if (rc)
		return rc;
	l.globals = runsyms_addr(syms, RUNSYM_PHP_GLOBALS);
	l.program = is_program(f);
	*out = l;
	return 0;
}
