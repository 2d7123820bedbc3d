/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold: one kind of value of the selection, summed over segments into one stack tree.
 *
 * Ids mean something in one segment only, so everything is merged by content: a frame is its place
 * (module, build-id, offset, line, inlined) and its name, so that two calls within one function
 * stay two (docs/decisions/0061); a process is (pid, start, exec count). Each segment keeps three
 * dense tables from its own ids to the merged ones, filled as they are met; a stack is walked to
 * the root once.
 */
#include "tools/fold/fold.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/days.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/fold_parts.h"
#include "tools/fold/fold_slices.h"
#include "tools/fold/fold_wall.h"
#include "tools/fold/shortfall.h"
#include "tools/print/reading.h"
#include "tools/print/when.h"
#include "tools/select/select.h"
#include "tools/waits/waitstack.h"

#define NOTHING 1

/* --- segments --- */

static void read_meta(struct folding *f, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, "SELECT key, value FROM meta WHERE key IN ('host', 'kernel')",
			       -1, &st, NULL) != SQLITE_OK)
		return;
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(st, 0);
		const char *value = (const char *)sqlite3_column_text(st, 1);

		if (key && value && !strcmp(key, "host"))
			f->pub->host = fold_text(f->b, value);
		else if (key && value)
			f->pub->kernel = fold_text(f->b, value);
	}
	sqlite3_finalize(st);
}

void fold_add_to_node(struct folding *f, uint32_t node, uint64_t n, uint64_t ns, double variance)
{
	f->pub->nodes[node].self_variance += variance;
	f->pub->nodes[node].self_ns += ns;
	f->pub->nodes[node].self_samples += n;
	f->pub->frames_unnamed_ns += f->pub->frames[f->pub->nodes[node].frame].named ? 0 : ns;
}

/* Sums by series go to the nodes of the series. */
static void sum_series(struct folding *f)
{
	for (size_t i = 0; f->seg_series && i < f->dict->n_series; i++) {
		const struct seg_series *x = &f->seg_series[i];

		if (!x->n && !x->ns)
			continue;
		fold_add_to_node(f, x->node, x->n, x->ns, x->variance);
		f->pub->processes[x->process].ns += x->ns;
		f->pub->processes[x->process].samples += x->n;
	}
}

static size_t functions_in(const struct store_dict *d)
{
	uint32_t most = 0;

	for (size_t i = 0; i < d->n_frames; i++)
		most = d->frames[i].function > most ? d->frames[i].function : most;
	return most;
}

/* Sums by thread and stack say all of samples: an archive has them, but not by slice. Of waits they
 * lack what each was for, but in a day. */
static bool needs_series(const struct folding *f)
{
	return !f->by_stack && !store_segment_is_day(f->seg) &&
	       (f->pub->kind->kind != STORE_KIND_CPU || f->opts.with ||
		(f->pub->n_slices && !f->by_files) || fold_is_large(f) ||
		fold_is_grouped(f, f->dict));
}

int fold_segment_begin(struct folding *f, const char *path, struct err *e)
{
	int rc = select_segment(f->sel, path, &f->seg, e);
	bool by_series = false;

	if (rc == 0)
		rc = (f->opts.no_stacks ? store_segment_tasks : store_segment_stacks)(f->seg,
										      &f->dict, e);
	if (rc == 0)
		by_series = needs_series(f);
	if (by_series)
		rc = store_segment_dict(f->seg, &f->dict, e);
	if (rc)
		return rc;
	f->seg_frame = mem_array(f->dict->n_frames + 1, sizeof(*f->seg_frame));
	f->seg_image = mem_array(f->dict->n_images + 1, sizeof(*f->seg_image));
	f->seg_function = mem_array(functions_in(f->dict) + 1, sizeof(*f->seg_function));
	f->seg_process = mem_array(f->dict->n_processes + 1, sizeof(*f->seg_process));
	if (by_series)
		f->seg_series = mem_array(f->dict->n_series + 1, sizeof(*f->seg_series));
	f->seg_task = mem_array(f->dict->n_tasks + 1, sizeof(*f->seg_task));
	f->sparse = (fold_is_large(f) && (f->by_stack || by_series)) ||
		    (by_series && fold_is_grouped(f, f->dict));
	f->seg_plain = mem_array(f->sparse ? 1 : f->dict->n_stacks + 1, sizeof(*f->seg_plain));
	if (!f->by_stack)
		f->seg_group =
			mem_array(f->sparse ? 1 : f->dict->n_stacks + 1, sizeof(*f->seg_group));
	f->seg_script = f->opts.leaf_frames ? fold_script_stacks(f->dict) : NULL;
	f->seg_hidden =
		f->opts.interpreter || f->opts.no_stacks ? NULL : fold_hide_interpreters(f->dict);
	f->seg_named = f->opts.reasons && f->pub->kind->kind == STORE_KIND_OFFCPU ?
			       waitstack_named(f->dict) :
			       NULL;
	f->n_told = f->pub->n_processes;
	f->first_leaf = f->pub->n_leaves;
	f->first_cell = f->pub->n_cells;
	read_meta(f, store_segment_tables(f->seg));
	return 0;
}

void fold_segment_end(struct folding *f)
{
	if (f->late || f->sparse)
		fold_point_at_nodes(f);
	sum_series(f);
	fold_join_leaves(f);
	fold_join_cells(f);
	pairsums_settle(&f->pub->spent);
	free(f->seg_frame);
	free(f->seg_image);
	free(f->seg_process);
	free(f->seg_function);
	free(f->seg_task);
	free(f->seg_series);
	free(f->seg_plain);
	free(f->seg_group);
	free(f->seg_script);
	free(f->seg_hidden);
	free(f->seg_named);
	f->seg_script = NULL;
	f->seg_hidden = NULL;
	f->seg_named = NULL;
	f->seg_frame = f->seg_process = f->seg_plain = f->seg_group = NULL;
	f->seg_image = NULL;
	f->seg_function = NULL;
	f->seg_task = NULL;
	f->seg_series = NULL;
	f->n_seg_stacks = 0;
	memset(f->seg_path, 0, sizeof(f->seg_path));
	idmap_release(&f->seg_node);
	idmap_release(&f->seg_leaf);
	idmap_release(&f->seg_place);
	f->heard_run = NULL; /* it is of this segment */
	f->seg = NULL;
}

/* `of`: the segment, or the first one that a day is read in place of. */
static int fold_segment(struct folding *f, const char *path, const struct store_segment_info *of,
			struct err *e)
{
	int rc;

	if (f->by_files)
		f->file_slice = fold_slice_of_file(f->sel, f->pub, of);
	if (select_run_in(f->sel, path, 0) < 0)
		return 0;
	rc = fold_segment_begin(f, path, e);
	if (rc)
		return rc;
	rc = fold_rows_read(f, path, e);
	if (f->late || f->sparse)
		fold_place_stacks(f);
	fold_segment_end(f);
	return rc;
}

/* --- a fold --- */

int fold_start(struct folding *f, const struct selection *sel, const struct fold_opts *o,
	       struct err *e)
{
	const struct store_kind_info *kind = store_kind_info(o->kind);

	*f = (struct folding){.b = fold_begin(), .sel = sel, .opts = *o};
	f->opts.with = o->with && kind->with;
	if (o->flat && o->slices) {
		f->opts.flat = kind->class != STORE_GAUGE;
		f->opts.functions = f->opts.cells = true;
	}
	f->pub = &f->b->pub;
	f->pub->functions = f->opts.functions || f->opts.flat;
	f->late = o->group == FOLD_BY_NONE && !f->opts.with && !o->no_stacks && !o->leaf_frames &&
		  !(o->reasons && kind->kind == STORE_KIND_OFFCPU);
	f->by_stack = f->late || o->no_stacks || o->leaf_frames;
	f->pub->kind = kind;
	f->pub->unit = o->count ? kind->unit_n : kind->unit_value;
	f->by_files = o->slices && f->opts.cells && kind->class != STORE_GAUGE &&
		      fold_slices_of_files(sel, o->slices, f->pub);
	return o->slices && !f->by_files ? fold_slices_plan(sel, o->slices, f->pub, e) : 0;
}

/* When sonded made the family of this kind do less. */
static void add_shed(struct folding *f)
{
	const char *family = f->pub->kind->kind == STORE_KIND_CPU ? "cpu" : f->pub->kind->family;
	cleanup_free struct shedlog_span *v = NULL;
	size_t n = 0;

	f->pub->asked_from_ns = f->sel->from_ns;
	f->pub->asked_to_ns = f->sel->to_ns;
	if (f->always && family)
		shortfall_read(f->sel, family, &v, &n);
	for (size_t i = 0; i < n; i++)
		fold_add_shed(f->b, &v[i]);
}

bool fold_finish(struct folding *f)
{
	add_shed(f);
	free(f->seg_stacks);
	free(f->seen);
	free(f->path);
	f->seg_stacks = NULL;
	f->seen = NULL;
	f->path = NULL;
	fold_join_last(f);
	fold_end(f->b);
	fold_spans_cover(&f->spans, f->pub->slices, f->pub->n_slices);
	f->pub->covered_ns = fold_spans_length(&f->heard);
	f->pub->self_program_samples = f->found_self_n;
	return f->pub->nodes[0].total_samples || f->pub->nodes[0].total_ns;
}

/* May a day have an answer to it (schema/store/read/days.h)? */
static bool takes_days(const struct folding *f)
{
	const enum store_kind kind = f->pub->kind->kind;

	return !f->opts.with && !f->opts.tags && f->pub->kind->class != STORE_GAUGE &&
	       !f->pub->kind->sized &&
	       (kind == STORE_KIND_CPU || kind == STORE_KIND_OFFCPU ||
		kind == STORE_KIND_RUNQUEUE || f->opts.no_stacks);
}

/* Are all of the segments that it is read in place of counted in one slice? */
static bool in_one_slice(const struct folding *f, const struct store_part *part)
{
	const struct store_segment_info *of = f->sel->segments + part->first;

	for (size_t i = 1; f->by_files && i < part->n; i++)
		if (fold_slice_of_file(f->sel, f->pub, &of[i]) !=
		    fold_slice_of_file(f->sel, f->pub, &of[0]))
			return false;
	return true;
}

static int fold_part(struct folding *f, const struct store_part *part, struct err *e)
{
	const struct store_segment_info *of = &f->sel->segments[part->first];
	const struct store_dict *d = NULL;
	struct store_segment *seg;
	int rc = part->day ? select_segment(f->sel, part->path, &seg, e) : 0;

	if (!rc && part->day && f->opts.group != FOLD_BY_NONE)
		rc = store_segment_stacks(seg, &d, e);
	if (rc)
		return rc;
	if (!part->day ||
	    (fold_takes_day(f, seg) && in_one_slice(f, part) && !(d && fold_is_grouped(f, d))))
		return fold_segment(f, part->path, of, e);
	for (size_t i = part->first; !rc && i < part->first + part->n; i++)
		rc = fold_segment(f, f->sel->segments[i].path, &f->sel->segments[i], e);
	return rc;
}

/* In order of time; of a gauge the newest holds: it comes first. */
static int fold_all(struct folding *f, struct err *e)
{
	const struct selection *sel = f->sel;
	const bool gauge = f->pub->kind->class == STORE_GAUGE;
	const struct store_part *parts = NULL;
	const size_t n = takes_days(f) ? select_parts(sel, &parts) : sel->n_segments;
	int rc = 0;

	reading_begin(n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct store_segment_info *of = &sel->segments[gauge ? n - 1 - i : i];

		reading_file(i);
		rc = parts ? fold_part(f, &parts[i], e) : fold_segment(f, of->path, of, e);
	}
	reading_end();
	return rc;
}

/* 0, an error, or NOTHING, which is not said yet. */
static int fold_of(const struct selection *sel, const struct fold_opts *o, struct fold **out,
		   struct err *e)
{
	struct folding f;
	int rc = fold_start(&f, sel, o, e);

	if (rc == 0)
		rc = fold_all(&f, e);
	if (!fold_finish(&f) && rc == 0)
		rc = NOTHING;
	if (rc) {
		fold_free(f.pub);
		return rc;
	}
	*out = f.pub;
	return 0;
}

static int nothing_tagged(const struct selection *sel, enum store_kind kind, struct err *e)
{
	err_set(e, -ENODATA, EXIT_NOTHING,
		"nothing of kind %s was recorded in %s while these requests were served",
		store_kind_info(kind)->name, sel->range);
	err_fix(e, "sonde requests --slowest --side server");
	return -ENODATA;
}

int fold_make(const struct selection *sel, const struct fold_opts *o, struct fold **out,
	      struct err *e)
{
	struct fold_opts opts = *o;
	int rc;

	if (o->wall)
		return fold_wall_make(sel, o, out, e);
	opts.kind = o->kind ? o->kind : STORE_KIND_CPU;
	rc = fold_of(sel, &opts, out, e);
	if (rc == NOTHING && o->tags)
		return nothing_tagged(sel, opts.kind, e);
	if (rc == NOTHING && !o->kind) {
		rc = fold_kind_there(sel, &opts.kind, e);
		if (rc)
			return rc;
		rc = opts.kind == STORE_KIND_CPU ? NOTHING : fold_of(sel, &opts, out, e);
	}
	return rc == NOTHING ? fold_nothing(sel, opts.kind, e) : rc;
}
