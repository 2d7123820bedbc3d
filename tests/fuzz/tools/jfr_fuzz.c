/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/jfr/jfr.c
 *         schema/jfr/jfr_types.c
 *         schema/jfr/jfr_value.c
 *         tools/formats/jfr/jfr_read.c
 *
 * Any bytes are a recording or an error that says why. What is read adds up.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tools/formats/jfr/jfr_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fold_opts o = {.leaves = true};
	struct fold *f = NULL;
	struct err e = {0};
	uint64_t nodes = 0, leaves = 0;

	o.kind = size % 3 ? 0 : STORE_KIND_ALLOC;
	if (jfr_import(data, size, "fuzz", &o, &f, &e)) {
		if (!e.what[0] || (e.exit != EXIT_USAGE && e.exit != EXIT_NOTHING) || f)
			abort();
		return 0;
	}
	for (size_t i = 0; i < f->n_nodes; i++)
		nodes += f->nodes[i].self_ns;
	for (size_t i = 0; i < f->n_leaves; i++)
		leaves += f->leaves[i].ns;
	if (nodes != leaves || nodes != f->nodes[0].total_ns)
		abort();
	fold_free(f);
	return 0;
}
