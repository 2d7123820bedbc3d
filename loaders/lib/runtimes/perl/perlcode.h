/* SPDX-License-Identifier: Apache-2.0 */
/* perlcode: what Perl's subs and statements say of themselves: "Package::name" as Perl's own
 * messages have it, and the file; of what is no sub "(eval)", "(format)" and, of the program's file
 * itself, "(main)". */
#ifndef SONDE_RUNTIMES_PERLCODE_H
#define SONDE_RUNTIMES_PERLCODE_H

#include "loaders/lib/runtimes/script.h"
#include "probes/runtimes/perl_layout.h"

struct perlcode {
	const struct runtime_memory *m;
	const struct perl_layout *l;
};

/* `kind`: enum perl_kind. Of a sub its CV, of others the address of their file's text. Keeps
 * out->line; false: it cannot be read, and *out is unchanged. */
bool perlcode_read(const struct perlcode *c, uint32_t kind, uint64_t cv, uint64_t file,
		   struct script_place *out);

#endif
