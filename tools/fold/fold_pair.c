/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_pair: two windows of one archive as two folds with one tree. Its dictionary is loaded once,
 * the rows of the windows are read by two threads, and what has something in either of them becomes
 * a node of both.
 */
#include "tools/fold/fold_pair.h"

#include <errno.h>
#include <string.h>

#include "schema/base/worker.h"
#include "tools/fold/fold_parts.h"
#include "tools/print/reading.h"

struct half {
	struct folding f;
	const char *path;
	const struct fold_build *tree; /* whose tree it takes, NULL: it has one */
	int rc;
	struct err unsaid; /* what goes wrong goes wrong again, one window by itself, and is said
			      then */
};

static bool are_one_archive(const struct selection *const sel[2])
{
	return sel[0]->n_segments == 1 && sel[1]->n_segments == 1 &&
	       !strcmp(sel[0]->segments[0].path, sel[1]->segments[0].path) &&
	       select_run_in(sel[0], sel[0]->segments[0].path, 0) >= 0 &&
	       select_run_in(sel[1], sel[1]->segments[0].path, 0) >= 0;
}

/* Each has its own connection; the second uses the first one's dictionary. */
static int open_both(struct half h[2])
{
	struct store_segment *second;
	int rc = select_segment(h[1].f.sel, h[1].path, &second, &h[1].unsaid);

	if (rc == 0 && !store_segment_archived(second))
		rc = -EAGAIN;
	if (rc == 0)
		rc = fold_segment_begin(&h[0].f, h[0].path, &h[0].unsaid);
	if (rc)
		return rc;
	rc = store_segment_dict(h[0].f.seg, &h[0].f.dict, &h[0].unsaid);
	if (rc == 0)
		rc = store_segment_share(second, h[0].f.seg);
	if (rc == 0)
		rc = fold_segment_begin(&h[1].f, h[1].path, &h[1].unsaid);
	if (rc)
		fold_segment_end(&h[0].f);
	return rc;
}

static void read_rows(void *ctx)
{
	struct half *h = ctx;

	h->rc = fold_rows_read(&h->f, h->path, &h->unsaid);
}

static void finish(void *ctx)
{
	struct half *h = ctx;

	if (h->tree)
		fold_take_tree(h->f.b, h->tree);
	fold_segment_end(&h->f);
	if (!fold_finish(&h->f) && !h->rc)
		h->rc = -ENODATA;
}

static void place_both(struct half h[2])
{
	const size_t n = h[0].f.dict->n_stacks;

	for (size_t i = 0; i < n; i++)
		h[0].f.seg_plain[i] |= h[1].f.seg_plain[i];
	fold_place_stacks(&h[0].f);
	memcpy(h[1].f.seg_plain, h[0].f.seg_plain, n * sizeof(*h[1].f.seg_plain));
	h[1].tree = h[0].f.b;
}

static void both(struct half h[2], void (*work)(void *ctx))
{
	struct worker other;

	worker_start(&other, work, &h[1]);
	work(&h[0]);
	worker_join(&other);
}

static bool make_both(struct half h[2])
{
	if (h[0].rc || h[1].rc || !h[0].f.late || !h[1].f.late || open_both(h))
		return false;
	both(h, read_rows);
	place_both(h);
	both(h, finish);
	return !h[0].rc && !h[1].rc;
}

bool fold_pair_make(const struct selection *const sel[2], const struct fold_opts *const o[2],
		    struct fold *out[2])
{
	struct half h[2];
	bool made;

	if (!are_one_archive(sel) || o[0]->wall || o[1]->wall)
		return false;
	for (int i = 0; i < 2; i++) {
		h[i] = (struct half){.path = sel[i]->segments[0].path};
		h[i].rc = fold_start(&h[i].f, sel[i], o[i], &h[i].unsaid);
	}
	reading_begin(1);
	made = make_both(h);
	reading_end();
	select_segments_close(sel[1]); /* what it reads by is the first one's */
	for (int i = 0; i < 2; i++) {
		out[i] = made ? h[i].f.pub : NULL;
		if (!made)
			fold_free(h[i].f.pub);
	}
	return made;
}
