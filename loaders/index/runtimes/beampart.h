/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beampart: the index's section BEAM (schema/image/format.h, condition 15) of a file that holds
 * an Erlang runtime with a JIT (beam.smp, OTP 24 and later).
 *
 * It is found by symbols that drivers and debuggers need, which stripping keeps: etp_otp_release, a
 * text; etp_beamasm, 1 with a JIT; the_active_code_index, erts_atom_table, beam_normal_exit,
 * erts_frame_layout; erts_aligned_scheduler_data and its two of dirty schedulers, by which the
 * callers of C code are found. The tables of code ranges have no symbol: they are among the
 * variables of .bss.
 */
#ifndef SONDE_INDEX_BEAMPART_H
#define SONDE_INDEX_BEAMPART_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/elf/runsyms.h"
#include "probes/runtimes/beam_layout.h"

#define BEAMPART_OLDEST 24u
#define BEAMPART_NEWEST 99u

/* -ENOENT: no such runtime. Else as source_read. */
int beampart_make(struct elf_file *f, const struct runsyms *syms, struct beam_layout *out);

#endif
