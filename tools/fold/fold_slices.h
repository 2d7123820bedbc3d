/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_slices: a range in equal parts, and for how long something recorded in each of them: what a
 * gap is, and what idle.
 */
#ifndef SONDE_TOOLS_FOLD_SLICES_H
#define SONDE_TOOLS_FOLD_SLICES_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"
#include "tools/select/select.h"

/* The widest bucket of the selection's runs that have something of the kind, in *bucket_s if it is
 * wider than that. */
int fold_slices_bucket(const struct selection *sel, enum store_kind kind, int64_t *bucket_s,
		       struct err *e);

/*
 * Fill in f->slices: at most `max` parts, which end between buckets of the coarsest run that
 * touches the range, equally many buckets in each; the first begins, and the last ends, where the
 * range does. A bucket belongs to the part that it begins in.
 */
int fold_slices_plan(const struct selection *sel, uint32_t max, struct fold *f, struct err *e);

/*
 * The same where the range has many files: at most `max` slices, each of which has whole files, so
 * that what an archive keeps of all its rows says what the slice has. A slice begins where a file
 * does, when the one before it has most of the longest file's time; in a range of many days, with
 * the first file of a day. false, and nothing is filled in: there are fewer than
 * FOLD_SLICES_OF_FILES of them, or the files are of several stores or a recording.
 */
#define FOLD_SLICES_OF_FILES 12
bool fold_slices_of_files(const struct selection *sel, uint32_t max, struct fold *f);
/* The slice that all of such a file is counted in: that of the middle of its time. */
uint32_t fold_slice_of_file(const struct selection *sel, const struct fold *f,
			    const struct store_segment_info *file);

struct fold_spans {
	struct fold_span {
		int64_t from_ns, to_ns;
	} * v;
	size_t n, cap;
};
/* The part of the range whose buckets are counted in it: those of `bucket_s` seconds that begin in
 * it, each whole. It is as long as the range, or as a bucket more or less. */
void fold_slices_counted(const struct selection *sel, uint32_t bucket_s, int64_t *from_ns,
			 int64_t *to_ns);
/* The times of the runs of a segment, as far as their buckets begin in the range; of one only, if
 * `run` is not 0. */
void fold_spans_note(struct fold_spans *s, const struct selection *sel, const struct store_dict *d,
		     int64_t run);
void fold_spans_add(struct fold_spans *s, int64_t from_ns, int64_t to_ns);
/* ns that lie within any of them, releases the spans. */
uint64_t fold_spans_length(struct fold_spans *s);
/* Fill in covered_ns; releases the spans. */
void fold_spans_cover(struct fold_spans *s, struct fold_slice *slices, size_t n);

#endif
