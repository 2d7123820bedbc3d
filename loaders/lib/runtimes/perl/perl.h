/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perl: Perl frames of the threads of one process. What is walked is in probes/runtimes/perl.h;
 * here they are placed among the native frames (chunks.h).
 *
 * 1. A build with threads has an interpreter for each thread that runs Perl. Without, it is the
 *    process's only one: its frames belong to the thread that is in the interpreter's loop.
 * 2. Functions of C have no Perl frame: their native frames are there.
 */
#ifndef SONDE_RUNTIMES_PERL_H
#define SONDE_RUNTIMES_PERL_H

#include "loaders/lib/runtimes/script.h"

struct perl;

/* As runtimes.h says of its functions. */
struct perl *perl_open(const struct runtime_memory *m, const void *section, size_t size,
		       uint64_t bias);
void perl_close(struct perl *p);
void perl_stack(struct perl *p, const struct runtime_native *native, struct script_stack *out);

#endif
