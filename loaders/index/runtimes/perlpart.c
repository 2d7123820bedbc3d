/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/runtimes/perlpart.h"

#include <errno.h>

#include "loaders/index/elf/region.h"
#include "schema/base/array.h"

static const struct row {
	unsigned version;
	struct perl_layout l;
} rows_of[] = {
	{32, {.interp_cop = 224, .interp_stackinfo = 240}},
	{34, {.interp_cop = 208, .interp_stackinfo = 224}},
	{36, {.interp_cop = 208, .interp_stackinfo = 224, .aux = 32}},
	{38, {.interp_cop = 208, .interp_stackinfo = 224, .aux = 32}},
	{40, {.interp_cop = 208, .interp_stackinfo = 224, .aux = 32}},
	{42, {.interp_cop = 208, .interp_stackinfo = 224, .aux = 32}},
};

bool perlpart_layout(unsigned version, struct perl_layout *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows_of); i++) {
		if (rows_of[i].version != version)
			continue;
		*out = rows_of[i].l;
		out->format = PERL_FORMAT;
		out->version = 5 << 8 | version;
		return true;
	}
	return false;
}

static int version_read(struct elf_file *f, uint64_t at, unsigned *out)
{
	cleanup_region struct region r = {0};
	int rc = elf_bytes_at(f, at) ? region_read(f, at, 1, &r) : -ENOENT;

	if (!rc)
		*out = r.bytes[0];
	return rc;
}

static void loop_add(struct perl_layout *l, unsigned *n, struct elf_range r)
{
	if (r.end <= r.start || *n == PERL_RANGES)
		return;
	l->loop_start[*n] = r.start;
	l->loop_end[(*n)++] = r.end;
}

/* It asks for a dynamic loader, or needs none at a fixed address; a library does neither. */
static bool is_program(const struct elf_file *f)
{
	for (size_t i = 0; i < f->segment_count; i++)
		if (f->segments[i].p_type == PT_INTERP)
			return true;
	return f->type == ET_EXEC;
}

int perlpart_make(struct elf_file *f, const struct runsyms *syms, struct perl_layout *out)
{
	struct perl_layout l = {0};
	unsigned version = 0, n = 0;
	int rc;

	if (!f->is64 || f->machine != EM_X86_64 || !runsyms_addr(syms, RUNSYM_PERL_VERSION) ||
	    !runsyms_addr(syms, RUNSYM_PERL_LOOP))
		return -ENOENT;
	rc = version_read(f, runsyms_addr(syms, RUNSYM_PERL_VERSION), &version);
	if (rc)
		return rc;
	if (!perlpart_layout(version, &l))
		return -ENOENT;
	l.key = runsyms_addr(syms, RUNSYM_PERL_KEY);
	l.cop = runsyms_addr(syms, RUNSYM_PERL_COP);
	l.stackinfo = runsyms_addr(syms, RUNSYM_PERL_STACKINFO);
	loop_add(&l, &n, syms->at[RUNSYM_PERL_LOOP]);
	loop_add(&l, &n, syms->at[RUNSYM_PERL_DEBUG_LOOP]);
	if (!n || (!l.key && (!l.cop || !l.stackinfo)))
		return -ENOENT;
	l.program = is_program(f);
	*out = l;
	return 0;
}
