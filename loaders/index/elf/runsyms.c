/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/runsyms.h"
#include "schema/base/array.h"

#include <stdbool.h>
#include <string.h>

static const struct {
	const char *name;
	enum runsym which;
	bool loop;
} KNOWN[] = {
	{"executor_globals", RUNSYM_PHP_GLOBALS, false},
	{"execute_ex", RUNSYM_PHP_LOOP, true},
	{"ruby_version", RUNSYM_RUBY_VERSION, false},
	{"ruby_current_vm_ptr", RUNSYM_RUBY_VM, false},
	{"rb_thread_current", RUNSYM_RUBY_THREAD, false},
	{"rb_id2str", RUNSYM_RUBY_ID, false},
	{"PL_version", RUNSYM_PERL_VERSION, false},
	{"Perl_runops_standard", RUNSYM_PERL_LOOP, false},
	{"Perl_runops_debug", RUNSYM_PERL_DEBUG_LOOP, false},
	{"PL_thr_key", RUNSYM_PERL_KEY, false},
	{"PL_curcop", RUNSYM_PERL_COP, false},
	{"PL_curstackinfo", RUNSYM_PERL_STACKINFO, false},
	{"gHotSpotVMStructs", RUNSYM_JVM_STRUCTS, false},
	{"gHotSpotVMTypes", RUNSYM_JVM_TYPES, false},
	{"gHotSpotVMIntConstants", RUNSYM_JVM_CONSTANTS, false},
	{"etp_otp_release", RUNSYM_BEAM_RELEASE, false},
	{"etp_beamasm", RUNSYM_BEAM_JIT, false},
	{"the_active_code_index", RUNSYM_BEAM_ACTIVE, false},
	{"erts_atom_table", RUNSYM_BEAM_ATOMS, false},
	{"beam_normal_exit", RUNSYM_BEAM_EXIT, false},
	{"erts_frame_layout", RUNSYM_BEAM_FRAMES, false},
	{"erts_aligned_scheduler_data", RUNSYM_BEAM_SCHEDULERS, false},
	{"erts_aligned_dirty_cpu_scheduler_data", RUNSYM_BEAM_DIRTY_CPU, false},
	{"erts_aligned_dirty_io_scheduler_data", RUNSYM_BEAM_DIRTY_IO, false},
};

static void part_note(struct runsyms *r, uint64_t addr, uint64_t size)
{
	for (unsigned i = 0; i < r->part_count; i++)
		if (r->parts[i].start == addr)
			return;
	if (size && r->part_count < RUNSYMS_PARTS)
		r->parts[r->part_count++] = (struct elf_range){addr, addr + size};
}

void runsyms_note(struct runsyms *r, const char *name, uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++) {
		size_t n;

		if (name[0] != KNOWN[i].name[0])
			continue;
		n = strlen(KNOWN[i].name);
		if (strncmp(name, KNOWN[i].name, n))
			continue;
		if (!name[n])
			r->at[KNOWN[i].which] = (struct elf_range){addr, addr + size};
		else if (name[n] == '.' && KNOWN[i].loop)
			part_note(r, addr, size);
	}
}
