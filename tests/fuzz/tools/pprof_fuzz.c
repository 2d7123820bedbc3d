/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: tools/formats/pprof_read.c
 *         tools/formats/pprof_kind.c
 *         tools/formats/pprof_legacy.c
 *         tools/formats/labels.c
 *         schema/base/proto.c
 *
 * Any bytes are a profile or an error that says why. What is a profile adds up, and is read again
 * from what is written.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "tools/formats/pprof.h"
#include "tools/formats/pprof_legacy.h"
#include "tools/formats/pprof_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct fold *f)
{
	uint64_t ns = 0, samples = 0;

	for (size_t i = 0; i < f->n_nodes; i++) {
		if (i && f->nodes[i].parent >= i)
			abort();
		if (f->nodes[i].frame >= f->n_frames || !*f->frames[f->nodes[i].frame].name)
			abort();
		ns += f->nodes[i].self_ns;
		samples += f->nodes[i].self_samples;
	}
	if (ns != f->nodes[0].total_ns || samples != f->nodes[0].total_samples)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fold_opts o = {.leaves = true, .no_inline = size & 1};
	struct strbuf written = STRBUF_INIT;
	struct fold *f = NULL, *again = NULL;
	struct err e = {0};

	if (pprof_legacy_refuse(data, size, "fuzz", &e) && (!e.what[0] || !e.fix[0]))
		abort();
	if (pprof_read(data, size, "fuzz", &o, &f, &e)) {
		if (!e.what[0] || e.exit != EXIT_USAGE || f)
			abort();
		return 0;
	}
	check_sums(f);
	pprof_encode(f, &written);
	if (pprof_read(written.buf, written.len, "again", &o, &again, &e))
		abort();
	if (again->nodes[0].total_samples != f->nodes[0].total_samples)
		abort();
	fold_free(again);
	fold_free(f);
	strbuf_release(&written);
	return 0;
}
