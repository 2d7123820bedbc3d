/* SPDX-License-Identifier: Apache-2.0 */
/* day_stacks: stacks of several archives as one table: each is its frames, and equal ones are one.
 * The table has them in order of a tree, as packed/stack_columns.h packs them best. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/archive/day_merge.h"

/* "12,7,9" behind what is there. */
static size_t numbers_of(const char *text, uint32_t *out)
{
	size_t n = 0;

	while (text && *text) {
		char *end;
		const unsigned long v = strtoul(text, &end, 10);

		if (end == text)
			break;
		out[n++] = v > UINT32_MAX ? 0 : (uint32_t)v;
		text = *end == ',' ? end + 1 : end;
	}
	return n;
}

static size_t commas(const char *text)
{
	size_t n = text && *text ? 1 : 0;

	for (; text && *text; text++)
		n += *text == ',';
	return n;
}

static void take(struct day_merge *m, sqlite3_stmt *st)
{
	const int64_t id = sqlite3_column_int64(st, 0), base = sqlite3_column_int64(st, 1),
		      kept = sqlite3_column_int64(st, 2);
	const char *tail = (const char *)sqlite3_column_text(st, 4);
	struct day_stack *s;
	size_t keep = 0, more = commas(tail);

	if (id <= 0 || (uint64_t)id >= m->n_map[DAY_STACK])
		return;
	s = &m->own[id];
	if (base > 0 && base < id && kept > 0)
		keep = (uint64_t)kept < m->own[base].n ? (size_t)kept : m->own[base].n;
	m->n_frames += keep + more + 1;
	m->too_large |= m->n_frames > DAY_FRAMES_MOST;
	if (m->too_large)
		return;
	s->frames = mem_array(keep + more + 1, sizeof(*s->frames));
	if (keep)
		memcpy(s->frames, m->own[base].frames, keep * sizeof(*s->frames));
	s->n = (uint32_t)(keep + numbers_of(tail, s->frames + keep));
	s->frames[s->n++] = (uint32_t)sqlite3_column_int64(st, 3);
}

/* The archive's, as they are there. */
int day_stacks_read(struct day_merge *m)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		m->from, "SELECT id, base, keep, leaf, tail FROM stack ORDER BY id", -1, &st, NULL);

	m->own = mem_array(m->n_map[DAY_STACK], sizeof(*m->own));
	while (rc == SQLITE_OK && !m->too_large && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		take(m, st);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return m->too_large ? SQLITE_TOOBIG : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void day_stacks_forget(struct day_merge *m)
{
	for (size_t i = 0; m->own && i < m->n_map[DAY_STACK]; i++) {
		m->n_frames -= m->own[i].n;
		free(m->own[i].frames);
	}
	free(m->own);
	m->own = NULL;
}

/* The number of the archive's stack `id`. */
uint32_t day_stacks_join(struct day_merge *m, int64_t id)
{
	struct day_joined *j = &m->joined[DAY_STACK];
	const struct day_stack *s =
		id > 0 && (uint64_t)id < m->n_map[DAY_STACK] ? &m->own[id] : NULL;
	uint32_t *frames;
	uint64_t key = HASH_SEED, check = ~HASH_SEED, *at;
	bool fresh;

	if (!s || !s->n)
		return 0;
	if (m->map[DAY_STACK][id])
		return m->map[DAY_STACK][id];
	frames = mem_array(s->n, sizeof(*frames));
	for (size_t i = 0; i < s->n; i++) {
		frames[i] = (uint32_t)day_merge_ref(m, DAY_FRAME, s->frames[i]);
		key = hash_u64(key, frames[i]);
		check = hash_u64(check, frames[i] + 1ull);
	}
	at = idmap_ref(&j->id_of, hash_u64(key, s->n), &fresh);
	if (fresh) {
		*at = ++j->n;
		if (j->n + 1 > j->cap) {
			j->cap = 2 * (j->n + 64);
			j->check = mem_realloc(j->check, j->cap * sizeof(*j->check));
			m->stacks = mem_realloc(m->stacks, j->cap * sizeof(*m->stacks));
		}
		j->check[j->n] = check;
		m->stacks[j->n] = (struct day_stack){(uint32_t)j->n, s->n, frames};
		m->n_frames += s->n;
		m->too_large |= m->n_frames > DAY_FRAMES_MOST;
	} else {
		free(frames);
		m->collided |= j->check[*at] != check;
	}
	m->map[DAY_STACK][id] = (uint32_t)*at;
	return (uint32_t)*at;
}

static int by_frames(const void *a, const void *b)
{
	const struct day_stack *x = a, *y = b;

	for (size_t i = 0; i < x->n && i < y->n; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return (x->n > y->n) - (x->n < y->n);
}

static size_t alike(const struct day_stack *x, const struct day_stack *y)
{
	size_t n = 0;

	while (n < x->n && n < y->n && x->frames[n] == y->frames[n])
		n++;
	return n;
}

static int put(sqlite3_stmt *st, const struct day_stack *s, size_t id, size_t base, size_t keep)
{
	struct strbuf tail = STRBUF_INIT;

	for (size_t i = keep; i + 1 < s->n; i++)
		strbuf_addf(&tail, "%s%u", i > keep ? "," : "", s->frames[i]);
	sqlite3_bind_int64(st, 1, (int64_t)id);
	sqlite3_bind_int64(st, 2, (int64_t)base);
	sqlite3_bind_int64(st, 3, (int64_t)keep);
	sqlite3_bind_int64(st, 4, s->frames[s->n - 1]);
	sqlite3_bind_text(st, 5, strbuf_str(&tail), (int)tail.len, SQLITE_TRANSIENT);
	sqlite3_step(st);
	strbuf_release(&tail);
	return sqlite3_reset(st);
}

/* A stack's base is the one that brought in the last frame that it keeps. */
static int put_all(struct day_merge *m, struct day_stack *sorted, size_t n, uint32_t *brought)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		m->db, "INSERT INTO stack(id, base, keep, leaf, tail) VALUES(?, ?, ?, ?, ?)", -1,
		&st, NULL);

	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		const size_t keep = i ? alike(&sorted[i - 1], &sorted[i]) : 0;

		rc = put(st, &sorted[i], i + 1, keep ? brought[keep - 1] : 0, keep);
		for (size_t k = keep; k < sorted[i].n; k++)
			brought[k] = (uint32_t)i + 1;
		m->stack_id[sorted[i].id] = (uint32_t)i + 1;
	}
	sqlite3_finalize(st);
	return rc;
}

int day_stacks_end(struct day_merge *m)
{
	const size_t n = m->joined[DAY_STACK].n;
	size_t most = 0;
	uint32_t *brought;
	int rc;

	m->stack_id = mem_array(n + 1, sizeof(*m->stack_id));
	if (!n)
		return SQLITE_OK;
	qsort(m->stacks + 1, n, sizeof(*m->stacks), by_frames);
	for (size_t i = 1; i <= n; i++)
		most = m->stacks[i].n > most ? m->stacks[i].n : most;
	brought = mem_array(most, sizeof(*brought));
	rc = put_all(m, m->stacks + 1, n, brought);
	free(brought);
	return rc;
}
