/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_slices: a range in equal parts, and for how long something recorded in each of them: what a gap is, and what idle.
 */
#ifndef SONDE_TOOLS_FOLD_SLICES_H
#define SONDE_TOOLS_FOLD_SLICES_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold.h"
#include "tools/select.h"

/*
 * Parts of whole buckets of the coarsest run that touches the range, equally many in each (the last may have fewer), at
 * most `max`. A bucket belongs to the part that it begins in; what does not begin in any was not in the range either.
 * The array is the caller's.
 */
int fold_slices_plan(const struct selection *sel, uint32_t max, struct fold_slice **out, size_t *n, struct err *e);

struct fold_spans {
	struct fold_span { int64_t from_ns, to_ns; } *v;
	size_t n, cap;
};
/* The times of the runs of a segment; of one only, if `run` is not 0. */
void fold_spans_note(struct fold_spans *s, const struct store_dict *d, int64_t run);
/* Fill in covered_ns; releases the spans. */
void fold_spans_cover(struct fold_spans *s, struct fold_slice *slices, size_t n);

#endif
