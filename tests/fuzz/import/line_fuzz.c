/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: loaders/import/line.c
 *
 * Any bytes are a line for sonde-import within its bounds, or an error with words.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/import/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct line *l)
{
	if (!l->name || l->n_stack > LINE_STACK_MAX)
		abort();
	if (l->what == LINE_RUN && (!l->bucket_s || l->to_ns <= l->from_ns || l->from_ns < 0))
		abort();
	if (l->what == LINE_FRAME &&
	    strlen(l->module) + strlen(l->path) + strlen(l->build_id) + strlen(l->file) >
		    LINE_MAX_BYTES)
		abort();
	if (l->what == LINE_ADD && !store_kind_info(l->kind))
		abort();
	for (size_t i = 0; i < l->n_times; i++)
		if (l->times[i].at_ns < 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	struct line l;

	if (!line_parse((const char *)data, size, &l, &e))
		check(&l);
	else if (!e.what[0])
		abort();
	line_release(&l);
	return 0;
}
