/* SPDX-License-Identifier: Apache-2.0 */
/*
 * * covers: tools/formats/json/json_read.c
 *         tools/formats/json/gecko_read.c
 *
 * Any bytes are a profile in JSON or an error that says why. What is read adds up.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tools/formats/json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fold_opts o = {.leaves = true};
	struct fold *f = NULL;
	struct err e = {0};
	uint64_t nodes = 0, leaves = 0;

	json_read_looks((const char *)data, size);
	if (json_read(data, size, "fuzz", &o, &f, &e)) {
		if (!e.what[0] || e.exit != EXIT_USAGE || f)
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
