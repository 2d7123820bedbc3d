/* SPDX-License-Identifier: Apache-2.0 */
/* dict_thread: the half of a dictionary that needs no stacks; see dict_rows.h. */
#include <errno.h>
#include <stdlib.h>

#include "schema/base/worker.h"
#include "schema/base/mem.h"
#include "schema/store/files/readonly.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/read.h"
#include "schema/store/read/dict/dict_rows.h"

#define WORTH_IT 4096 /* frames: less is read sooner than a second connection is there */

static uint32_t u32_of(int64_t v)
{
	return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* The same rows as columns, without a call for each value: series are most of a dictionary. False:
 * the table is not packed, or cannot be read. */
static bool series_packed(struct store_segment *s)
{
	struct packedread p;
	int rc = 0;

	if (!packedread_open(&p, s->db, "series", DICT_SERIES_COLUMNS))
		return false;
	for (size_t k = 0; !rc && k < p.t.n_blocks; k++) {
		rc = packedread_block(&p, k);
		for (size_t i = 0; !rc && i < p.c[0]->n; i++) {
			const uint32_t id = u32_of(p.c[0]->numbers[i]);

			if (!id || id >= s->n_series)
				continue;
			s->series_task[id] = u32_of(p.c[1]->numbers[i]);
			s->series_stack[id] = u32_of(p.c[2]->numbers[i]);
			s->series_label[id] = u32_of(p.c[3]->numbers[i]);
		}
		packedtable_release(&p.t, k);
	}
	packedread_release(&p);
	return !rc;
}

int dict_series_load(struct store_segment *s, struct err *e)
{
	int rc = dict_series_slots(s, e);

	return rc || series_packed(s) ? rc :
					dict_rows_each(s, DICT_SERIES_COLUMNS, "series",
						       s->n_series, dict_series_row, NULL, e);
}

static int load_half(struct store_segment *s, bool series, struct err *e)
{
	int rc = dict_names_load(s, e);

	return rc || !series ? rc : dict_series_load(s, e);
}

struct dict_thread {
	struct store_segment *s;
	struct store_segment part; /* what is read in the thread, and its connection */
	struct worker thread;
	bool begun, series;
	int64_t archived_ns;
	int rc;
};

/* Everything comes from one snapshot. An archive that was rewritten since it was opened is another
 * file, with other ids. */
static void load_part(void *ctx)
{
	struct dict_thread *d = ctx;
	struct err unsaid = {0}; /* what goes wrong is read again by the segment's own connection,
				    which says it */

	d->rc = readonly_open(d->part.path, &d->part.db, &unsaid);
	if (d->rc)
		return;
	if (sqlite3_exec(d->part.db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
	    readonly_archived_ns(d->part.db) == d->archived_ns)
		d->rc = load_half(&d->part, d->series, &unsaid);
	else
		d->rc = -EAGAIN;
	sqlite3_close(d->part.db); /* ends what it began */
	d->part.db = NULL;
}

struct dict_thread *dict_thread_begin(struct store_segment *s, bool series)
{
	struct dict_thread *d = mem_alloc(sizeof(*d));

	d->s = s;
	d->series = series;
	d->begun = sql_number(s->db, "SELECT max(id) FROM frame", 0) >= WORTH_IT;
	if (!d->begun)
		return d;
	d->archived_ns = readonly_archived_ns(s->db);
	d->part.path = s->path;
	worker_start(&d->thread, load_part, d);
	return d;
}

static void take_part(struct store_segment *s, struct store_segment *part, bool series)
{
	s->images = part->images;
	s->frames = part->frames;
	s->dict.n_images = part->dict.n_images;
	s->dict.n_frames = part->dict.n_frames;
	dict_rows_strings_move(&s->strings, &part->strings);
	if (!series)
		return;
	s->series_task = part->series_task;
	s->series_stack = part->series_stack;
	s->series_label = part->series_label;
	s->n_series = part->n_series;
}

static void drop_part(struct store_segment *part)
{
	free(part->images);
	free(part->frames);
	free(part->series_task);
	free(part->series_stack);
	free(part->series_label);
	dict_rows_strings_free(&part->strings);
}

int dict_thread_end(struct dict_thread *d, struct err *e)
{
	bool done = false;
	int rc = 0;

	if (d->begun) {
		worker_join(&d->thread);
		done = !d->rc;
	}
	if (done) {
		take_part(d->s, &d->part, d->series);
	} else {
		drop_part(&d->part);
		rc = load_half(d->s, d->series, e);
	}
	free(d);
	return rc;
}
