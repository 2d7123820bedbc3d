/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/read/samples.h"

#include <errno.h>
#include <sqlite3.h>

int samples_open(struct samples *c, struct store_segment *s, int64_t first, int64_t last,
		 struct err *e)
{
	c->s = s;
	c->n = 0;
	c->ended = 0;
	c->st = NULL;
	if (packedread_open(&c->packed, s->db, "sample", "ts, series, n")) {
		c->ended = sample_scan_begin(&c->scan, &c->packed.t, first, last);
		return c->ended ? samples_close(c, SQLITE_CORRUPT, e) : 0;
	}
	c->st = reading_prepare(s, "SELECT series, n, ts FROM sample WHERE ts BETWEEN ?1 AND ?2",
				e);
	if (!c->st)
		return e && e->code ? e->code : -EIO;
	sqlite3_bind_int64(c->st, 1, first);
	sqlite3_bind_int64(c->st, 2, last);
	return 0;
}

static int next_rows(struct samples *c)
{
	while (c->n < SAMPLES_CHUNK && !c->ended) {
		int rc = sqlite3_step(c->st);

		if (rc != SQLITE_ROW) {
			c->ended = rc;
			break;
		}
		sqlite3_int64 series = sqlite3_column_int64(c->st, 0),
			      n = sqlite3_column_int64(c->st, 1);

		if (series > 0 && (size_t)series < c->s->n_series && n > 0)
			c->rows[c->n++] = (struct sample_row){sqlite3_column_int64(c->st, 2),
							      (uint64_t)n, (uint32_t)series};
	}
	return c->n ? SQLITE_ROW : c->ended;
}

static void keep_known(struct samples *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->rows[i].series < c->s->n_series)
			c->rows[kept++] = c->rows[i];
	c->n = kept;
}

static int next_scanned(struct samples *c)
{
	do {
		c->n = sample_scan_next(&c->scan, c->rows, SAMPLES_CHUNK, &c->ended);
		if (!c->n)
			return c->ended ? SQLITE_CORRUPT : SQLITE_DONE;
		keep_known(c);
	} while (!c->n);
	return SQLITE_ROW;
}

int samples_next(struct samples *c)
{
	c->n = 0;
	return c->st ? next_rows(c) : next_scanned(c);
}

static int say_damaged(const struct samples *c, struct err *e)
{
	if (c->ended == -ENOMEM)
		return err_set(e, -ENOMEM, EXIT_STORE,
			       "cannot read the store's segment %s: out of memory", c->s->path);
	if (c->ended == -ENOTSUP)
		return err_set(e, -ENOTSUP, EXIT_STORE,
			       "a newer sonde archived %s: it takes that one to read it",
			       c->s->path);
	err_set(e, -EBADMSG, EXIT_STORE,
		"cannot read the store's segment %s: a block of samples is damaged", c->s->path);
	err_fix(e, "it is damaged: sqlite3 FILE .recover may save a part");
	return -EBADMSG;
}

int samples_close(struct samples *c, int rc, struct err *e)
{
	if (c->st)
		return reading_finish(c->s, c->st, rc == SQLITE_ROW ? SQLITE_DONE : rc, e);
	rc = rc == SQLITE_CORRUPT ? say_damaged(c, e) : 0;
	packedread_release(&c->packed);
	return rc;
}
