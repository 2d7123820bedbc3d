/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: tools/formats/perfscript_read.c
 *
 * Any bytes are output of perf script or an error that names a line. What is read adds up.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tools/formats/perfscript_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fold_opts opts = {.leaves = true};
	struct fold *f = NULL;
	struct err e = {0};
	uint64_t self = 0;

	perfscript_looks((const char *)data, size);
	if (perfscript_read(data, size, "fuzz", &opts, &f, &e))
		return e.what[0] ? 0 : (abort(), 0);
	for (size_t i = 0; i < f->n_nodes; i++)
		self += f->nodes[i].self_samples;
	if (self != f->nodes[0].total_samples || self != f->n_leaves)
		abort();
	fold_free(f);
	return 0;
}
