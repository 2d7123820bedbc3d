/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/lines/dwread.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loaders/index/lines/dwunit.h"
#include "schema/base/clock.h"

/* libdw ends the program when its memory runs out, unless its handler does not come back. A handler
 * has no context. */
static _Thread_local jmp_buf out_of_memory;

__attribute__((noreturn)) static void on_out_of_memory(void)
{
	longjmp(out_of_memory, 1);
}

struct reader {
	const struct dwread_input *in;
	Elf *main_elf, *alt_elf;
	Dwarf *main, *alt;
	struct dwunit_memory memory;
	struct dwunit unit;
	struct dwline_sections sections;
	Dwarf_Off offset; /* of the next unit */
	bool split;       /* a unit's functions are in a .dwo file */
	bool done;
	const char *note;
};

/* ---- opening ---- */

/* Unpacks what is compressed. NULL, or why it cannot be read. */
static const char *unpack(Elf *elf)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		GElf_Chdr chdr;

		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_COMPRESSED))
			continue;
		if (!gelf_getchdr(scn, &chdr))
			return "its debug sections are damaged";
		if (elf_compress(scn, 0, 0) >= 0)
			continue;
		return chdr.ch_type == ELFCOMPRESS_ZLIB ?
			       "its debug sections cannot be unpacked" :
		       chdr.ch_type == 2 ?
			       "its debug sections are compressed with zstd, which this libelf cannot unpack" :
			       "its debug sections are compressed in a way that this libelf does not know";
	}
	return NULL;
}

static Elf *elf_of(void *data, size_t size, const char **why)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory(data, size);
	*why = elf ? unpack(elf) : "its debug sections are damaged";
	if (*why) {
		elf_end(elf);
		return NULL;
	}
	return elf;
}

/* The bytes of a section, unpacked; none: empty. */
static struct dwline_bytes section_bytes(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return (struct dwline_bytes){0};
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *has =
			gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		Elf_Data *data = has && !strcmp(has, name) ? elf_getdata(scn, NULL) : NULL;

		if (data && data->d_buf)
			return (struct dwline_bytes){.data = data->d_buf, .size = data->d_size};
	}
	return (struct dwline_bytes){0};
}

static void handles_close(struct reader *r)
{
	dwarf_end(r->main);
	dwarf_end(r->alt);
	r->main = r->alt = NULL;
}

/* Fresh handles over the same bytes. */
static bool handles_open(struct reader *r)
{
	r->main = dwarf_begin_elf(r->main_elf, DWARF_C_READ, NULL);
	if (!r->main)
		return false;
	dwarf_new_oom_handler(r->main, on_out_of_memory);
	r->alt = r->alt_elf ? dwarf_begin_elf(r->alt_elf, DWARF_C_READ, NULL) : NULL;
	if (r->alt) {
		dwarf_new_oom_handler(r->alt, on_out_of_memory);
		dwarf_setalt(r->main, r->alt);
	}
	return true;
}

/* ---- reading ---- */

static bool is_split(Dwarf_Die *cu)
{
	return dwarf_hasattr(cu, DW_AT_GNU_dwo_name) || dwarf_hasattr(cu, DW_AT_dwo_name);
}

static void unit_at(struct reader *r, Dwarf_Off die_offset)
{
	Dwarf_Die cu;

	if (!dwarf_offdie(r->main, die_offset, &cu))
		return;
	/* what dwz moved to the side is read where it is referred to */
	if (dwarf_tag(&cu) != DW_TAG_compile_unit && dwarf_tag(&cu) != DW_TAG_skeleton_unit)
		return;
	if (r->in->skip_go && dwarf_srclang(&cu) == DW_LANG_Go)
		return;
	r->split |= is_split(&cu);
	dwunit_read(&r->unit, &cu);
}

/* Units until the batch is full. */
static void batch_read(struct reader *r)
{
	const Dwarf_Off start = r->offset;

	while (r->offset - start < DWREAD_BATCH_BYTES && !dwunit_is_late(&r->unit)) {
		Dwarf_Off next;
		size_t header;

		if (dwarf_next_unit(r->main, r->offset, &next, &header, NULL, NULL, NULL, NULL,
				    NULL, NULL) ||
		    next <= r->offset) {
			r->done = true;
			return;
		}
		unit_at(r, r->offset + header);
		r->offset = next;
	}
}

static void read_all(struct reader *r)
{
	while (!r->done && !dwunit_is_late(&r->unit)) {
		if (!handles_open(r)) {
			r->note = "its debug sections are damaged";
			return;
		}
		batch_read(r);
		handles_close(r);
	}
}

static const char *judge(const struct reader *r)
{
	if (r->note)
		return r->note;
	if (lineset_status(r->unit.set) == -ENOSPC)
		return "its debug information is larger than an index may hold: lines of a part are missing";
	if (r->unit.late)
		return "reading its debug information took too long: lines of a part are missing";
	if (r->split)
		return "its inlined functions are in .dwo files, which were not read";
	if (r->unit.nameless && r->in->alt_missing)
		return "names of inlined functions are in a dwz file that was not found";
	return NULL;
}

const char *dwread_run(const struct dwread_input *in, struct lineset *set)
{
	struct reader r = {.in = in, .unit = {.set = set, .until_cpu_ns = in->until_cpu_ns}};
	const char *why;

	r.unit.memory = &r.memory;
	r.main_elf = elf_of(in->main, in->main_size, &why);
	if (!r.main_elf)
		return why;
	r.sections =
		(struct dwline_sections){.line = section_bytes(r.main_elf, ".debug_line"),
					 .line_str = section_bytes(r.main_elf, ".debug_line_str"),
					 .str = section_bytes(r.main_elf, ".debug_str")};
	r.unit.sections = &r.sections;
	r.alt_elf = in->alt ? elf_of(in->alt, in->alt_size, &why) : NULL;
	if (setjmp(out_of_memory))
		return "reading its debug information took too much memory: lines of a part are missing";
	read_all(&r);
	dwunit_release(&r.unit);
	dwunit_memory_release(&r.memory);
	elf_end(r.main_elf);
	elf_end(r.alt_elf);
	return judge(&r);
}
