/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perlpart: the index's section PERL (schema/image/format.h, condition 15) of a file that holds a
 * Perl interpreter: perl, or libperl, which other programs load.
 *
 * It is found by symbols that extensions need, which stripping keeps: PL_version (a byte) and
 * Perl_runops_standard, its loop; PL_thr_key in a build with threads, PL_curcop and PL_curstackinfo
 * in one without.
 *
 * Offsets of members: 5.32 to 5.42, by the headers of 5.32, 5.36, 5.40 and 5.42 (perl.h, cop.h,
 * sv.h, hv.h), with and without threads; tests/unit/loaders/index/runtimes/perlpart_test.c compiles
 * those that are installed.
 */
#ifndef SONDE_INDEX_PERLPART_H
#define SONDE_INDEX_PERLPART_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/elf/runsyms.h"
#include "probes/runtimes/perl_layout.h"

/* 5.`version`. false: one that is not known. */
bool perlpart_layout(unsigned version, struct perl_layout *out);

/* -ENOENT: no interpreter, or an unknown one. Else as source_read. */
int perlpart_make(struct elf_file *f, const struct runsyms *syms, struct perl_layout *out);

#endif
