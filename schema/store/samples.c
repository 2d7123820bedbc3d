/* SPDX-License-Identifier: Apache-2.0 */
/* samples: see the header. */
#include "schema/store/samples.h"

#include <errno.h>
#include <sqlite3.h>

int samples_open(struct samples *c, struct store_segment *s, int64_t first, int64_t last, struct err *e)
{
	c->s = s;
	c->first = first;
	c->last = last;
	c->n = 0;
	c->ended = 0;
	c->block = (struct pack_reader){0};
	c->st = reading_prepare(s, s->sealed ? "SELECT ts, data FROM sample_pack WHERE ts <= ?2 AND last >= ?1 ORDER BY ts" :
					       "SELECT series, n, ts FROM sample WHERE ts BETWEEN ?1 AND ?2", e);
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
		sqlite3_int64 series = sqlite3_column_int64(c->st, 0), n = sqlite3_column_int64(c->st, 1);

		if (series > 0 && (size_t)series < c->s->n_series && n > 0)
			c->rows[c->n++] = (struct sample_row){sqlite3_column_int64(c->st, 2), (uint64_t)n, (uint32_t)series};
	}
	return c->n ? SQLITE_ROW : c->ended;
}

static void keep_wanted(struct samples *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct sample_row *r = &c->rows[i];

		if (r->ts >= c->first && r->ts <= c->last && r->series < c->s->n_series)
			c->rows[kept++] = *r;
	}
	c->n = kept;
}

/* The bytes of a block are the statement's: the next one is asked for when this one is read. */
static int next_packed(struct samples *c)
{
	for (;;) {
		c->n = pack_next(&c->block, c->rows, SAMPLES_CHUNK);
		if (c->block.bad)
			return SQLITE_CORRUPT;
		keep_wanted(c);
		if (c->n)
			return SQLITE_ROW;
		if (c->block.left || c->block.pos < c->block.len)
			continue;
		int rc = sqlite3_step(c->st);

		if (rc != SQLITE_ROW)
			return rc;
		pack_open(&c->block, sqlite3_column_blob(c->st, 1), (size_t)sqlite3_column_bytes(c->st, 1),
			  sqlite3_column_int64(c->st, 0));
	}
}

int samples_next(struct samples *c)
{
	c->n = 0;
	return c->s->sealed ? next_packed(c) : next_rows(c);
}

int samples_close(struct samples *c, int rc, struct err *e)
{
	if (rc == SQLITE_CORRUPT && c->block.bad) {
		err_set(e, -EBADMSG, EXIT_STORE, "cannot read the store's segment %s: a block of samples is damaged", c->s->path);
		err_fix(e, "it is damaged: sqlite3 FILE .recover may save a part");
		sqlite3_finalize(c->st);
		return -EBADMSG;
	}
	return reading_finish(c->s, c->st, rc == SQLITE_ROW ? SQLITE_DONE : rc, e);
}
