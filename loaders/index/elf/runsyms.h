/* SPDX-License-Identifier: Apache-2.0 */
/* runsyms: the symbols in a file's tables by which runtimes other than Go's and Python's are found.
 */
#ifndef SONDE_INDEX_RUNSYMS_H
#define SONDE_INDEX_RUNSYMS_H

#include <stdint.h>

#include "loaders/index/elf/elffile.h"

enum runsym {
	RUNSYM_PHP_GLOBALS, /* executor_globals */
	RUNSYM_PHP_LOOP,    /* execute_ex */
	RUNSYM_RUBY_VERSION,
	RUNSYM_RUBY_VM,
	RUNSYM_RUBY_THREAD, /* rb_thread_current */
	RUNSYM_RUBY_ID,     /* rb_id2str */
	RUNSYM_PERL_VERSION,
	RUNSYM_PERL_LOOP, /* Perl_runops_standard */
	RUNSYM_PERL_DEBUG_LOOP,
	RUNSYM_PERL_KEY, /* PL_thr_key */
	RUNSYM_PERL_COP, /* PL_curcop */
	RUNSYM_PERL_STACKINFO,
	RUNSYM_JVM_STRUCTS,
	RUNSYM_JVM_TYPES,
	RUNSYM_JVM_CONSTANTS,
	RUNSYM_BEAM_RELEASE,    /* etp_otp_release */
	RUNSYM_BEAM_JIT,        /* etp_beamasm */
	RUNSYM_BEAM_ACTIVE,     /* the_active_code_index */
	RUNSYM_BEAM_ATOMS,      /* erts_atom_table */
	RUNSYM_BEAM_EXIT,       /* beam_normal_exit */
	RUNSYM_BEAM_FRAMES,     /* erts_frame_layout */
	RUNSYM_BEAM_SCHEDULERS, /* erts_aligned_scheduler_data */
	RUNSYM_BEAM_DIRTY_CPU,  /* erts_aligned_dirty_cpu_scheduler_data */
	RUNSYM_BEAM_DIRTY_IO,   /* erts_aligned_dirty_io_scheduler_data */
	RUNSYM_N
};

#define RUNSYMS_PARTS 7

struct runsyms {
	struct elf_range at[RUNSYM_N]; /* start 0: not there; end == start: without a size */
	struct elf_range parts[RUNSYMS_PARTS]; /* pieces of a loop that the linker or compiler put
						  aside (".cold"), whosever */
	unsigned part_count;
};

/* A symbol that may be one of these. */
void runsyms_note(struct runsyms *r, const char *name, uint64_t addr, uint64_t size);

static inline uint64_t runsyms_addr(const struct runsyms *r, enum runsym which)
{
	return r->at[which].start;
}

#endif
