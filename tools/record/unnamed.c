/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/unnamed.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "tools/print/term.h"

#define NAME_COLUMNS 40

static bool is_candidate(const struct fold_frame *fr)
{
	return !fr->named && fold_frame_in_file(fr) &&
	       (fr->origin == FOLD_NATIVE || fr->origin == FOLD_GO || fr->origin == FOLD_UNKNOWN);
}

/* What was used in each frame as the innermost one; the sum of all. */
static uint64_t by_frame(const struct fold *f, uint64_t *used)
{
	uint64_t all = 0;

	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *l = &f->leaves[i];

		if (f->processes[l->process].self)
			continue;
		all += l->ns;
		if (l->node)
			used[f->nodes[l->node].frame] += l->ns;
	}
	return all;
}

/* One file: its first frame represents it. */
static uint32_t first_of_file(const struct fold *f, uint32_t frame)
{
	const struct fold_frame *fr = &f->frames[frame];

	for (uint32_t i = 0; i < frame; i++)
		if (is_candidate(&f->frames[i]) && !strcmp(f->frames[i].module, fr->module) &&
		    !strcmp(f->frames[i].module_path, fr->module_path))
			return i;
	return frame;
}

uint32_t unnamed_most(const struct fold *f, double *share)
{
	cleanup_free uint64_t *used = mem_array(f->n_frames ? f->n_frames : 1, sizeof(*used));
	cleanup_free uint64_t *of_file = mem_array(f->n_frames ? f->n_frames : 1, sizeof(*of_file));
	uint64_t all = by_frame(f, used);
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < f->n_frames; i++) {
		uint32_t first;

		if (!used[i] || !is_candidate(&f->frames[i]))
			continue;
		first = first_of_file(f, i);
		of_file[first] += used[i];
		if (best == UINT32_MAX || of_file[first] > of_file[best])
			best = first;
	}
	*share = best != UINT32_MAX && all ? (double)of_file[best] / (double)all : 0;
	return best;
}

void unnamed_print(const struct fold *f, FILE *out)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT, fix cleanup_strbuf = STRBUF_INIT;
	double share;
	uint32_t best = unnamed_most(f, &share);

	if (best == UINT32_MAX || share < UNNAMED_TELL)
		return;
	term_add_middle(&name, f->frames[best].module, NAME_COLUMNS);
	typed_add(
		&fix,
		"install its debug symbols (on Debian a package NAME-dbgsym or NAME-dbg), then: sudo sonde symbolize");
	fprintf(out,
		"%.0f %% of the time is in functions of %s that have no name: it is stripped\n  fix: %s\n",
		100 * share, strbuf_str(&name), strbuf_str(&fix));
}
