/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwread: lines and inlined functions of DWARF 2 to 5 into a lineset, by libdw.
 *
 * Time: units are read one after another until `until_cpu_ns` of the process's CPU time. Memory:
 * libdw keeps everything that it has decoded, so a new handle is opened every DWREAD_BATCH_BYTES of
 * units; if an allocation fails nevertheless, what was collected stays. In both cases `note` says
 * that the rest is missing.
 */
#ifndef SONDE_INDEX_DWREAD_H
#define SONDE_INDEX_DWREAD_H

#include <stdbool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/lines/lineset.h"

#define DWREAD_BATCH_BYTES (8u << 20)

struct dwread_input {
	void *main; /* borrowed: of dwelf_make; libelf writes into it */
	size_t main_size;
	void *alt; /* borrowed: of the file shared by dwz; NULL: none */
	size_t alt_size;
	bool alt_missing; /* the file names one that was not found */
	int64_t until_cpu_ns;
	bool skip_go; /* leave out Go's units: its pclntab has told */
};

/* What is there is in `set` afterwards, whatever comes back. The reason why lines are missing or
 * not complete, for people; NULL: all is there. */
const char *dwread_run(const struct dwread_input *in, struct lineset *set);

#endif
