/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: tools/formats/folded_read.c
 *         tools/formats/folded.c
 *
 * Any bytes are folded stacks or an error that names a line. What is read adds up, and is the same
 * when it is written and read again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/formats/folded.h"
#include "tools/formats/folded_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fold_opts o = {.leaves = size & 1};
	struct fold *f = NULL, *again = NULL;
	struct err e = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *out;

	if (folded_read(data, size, "fuzz", &o, &f, &e)) {
		if (!strstr(e.what, "line ") || e.exit != EXIT_USAGE || f)
			abort();
		return 0;
	}
	out = open_memstream(&text, &len);
	folded_write(f, out);
	fclose(out);
	if (folded_read(text, len, "again", &o, &again, &e))
		abort();
	/* a name that begins with # is a comment in that form */
	if (again->nodes[0].total_samples != f->nodes[0].total_samples && text[0] != '#' &&
	    !strstr(text, "\n#"))
		abort();
	fold_free(again);
	fold_free(f);
	free(text);
	return 0;
}
