/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap_pack: a finished map as one block of bytes, and back.
 *
 *   head, lines, pieces, places, pool     each aligned to 8 bytes
 *
 * The block comes from a process that has read a stranger's file, so perfmap_unpack checks all that
 * perfmap_find relies on: counts that fit into the block, ranges, and offsets that begin a text in
 * the pool.
 */
#include <errno.h>
#include <string.h>

#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/host/names/perfmap_parts.h"
#include "schema/base/mem.h"

#define MAGIC 0x31706d66726570ull /* "perfmp1" */

struct head {
	uint64_t magic, n_lines, n_pieces, n_places, pool_len, skipped;
};

/* Where each part begins, and where all ends. */
struct layout {
	size_t lines, pieces, places, pool, end;
};

static size_t aligned(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static struct layout layout_of(const struct head *h)
{
	struct layout l = {.lines = sizeof(*h)};

	l.pieces = l.lines + aligned(h->n_lines * sizeof(struct map_line));
	l.places = l.pieces + aligned(h->n_pieces * sizeof(struct piece));
	l.pool = l.places + aligned(h->n_places * sizeof(struct map_place));
	l.end = l.pool + aligned(h->pool_len);
	return l;
}

static struct head head_of(const struct perfmap *m)
{
	return (struct head){MAGIC, m->n_lines, m->n_pieces, m->n_places, m->pool_len, m->skipped};
}

size_t perfmap_packed_size(const struct perfmap *m)
{
	const struct head h = head_of(m);

	return layout_of(&h).end;
}

static void put(char *out, size_t at, const void *from, size_t size)
{
	if (size)
		memcpy(out + at, from, size);
}

void perfmap_pack(const struct perfmap *m, void *out)
{
	const struct head h = head_of(m);
	const struct layout l = layout_of(&h);

	memset(out, 0, l.end);
	put(out, 0, &h, sizeof(h));
	put(out, l.lines, m->lines, m->n_lines * sizeof(*m->lines));
	put(out, l.pieces, m->pieces, m->n_pieces * sizeof(*m->pieces));
	put(out, l.places, m->places, m->n_places * sizeof(*m->places));
	put(out, l.pool, m->pool, m->pool_len);
}

/* ---- back ---- */

static bool head_is_valid(const struct head *h, size_t len)
{
	return h->magic == MAGIC && h->n_lines <= PERFMAP_BYTES && h->n_pieces <= PERFMAP_BYTES &&
	       h->n_places <= PERFMAP_BYTES && h->pool_len <= PERFMAP_BYTES &&
	       layout_of(h).end == len;
}

/* Texts of at most PERFMAP_NAME_MAX bytes, each with a NUL behind it. */
static bool pool_is_valid(const char *pool, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = strnlen(pool + at, len - at);

		if (n > PERFMAP_NAME_MAX || n == len - at)
			return false;
		at += n + 1;
	}
	return true;
}

static bool begins_text(const struct perfmap *m, uint32_t at)
{
	return at < m->pool_len && (!at || !m->pool[at - 1]);
}

static bool lines_are_valid(const struct perfmap *m)
{
	for (size_t i = 0; i < m->n_lines; i++) {
		const struct map_line *l = &m->lines[i];

		if (!l->size || l->size > UINT64_MAX - l->start ||
		    (l->name != NAMELESS && (!begins_text(m, l->name) || !m->pool[l->name])) ||
		    (uint64_t)l->first_place + l->n_places > m->n_places)
			return false;
	}
	return true;
}

static bool places_are_valid(const struct perfmap *m)
{
	for (size_t i = 0; i < m->n_places; i++)
		if (!begins_text(m, m->places[i].file) || m->places[i].line > INT32_MAX)
			return false;
	return true;
}

/* In order, disjoint, each within the line that names it. */
static bool pieces_are_valid(const struct perfmap *m)
{
	uint64_t last = 0;

	for (size_t i = 0; i < m->n_pieces; i++) {
		const struct piece *p = &m->pieces[i];
		const struct map_line *l = p->line < m->n_lines ? &m->lines[p->line] : NULL;

		if (!l || p->start < last || p->start >= p->end || p->start < l->start ||
		    p->end - l->start > l->size)
			return false;
		last = p->end;
	}
	return true;
}

int perfmap_unpack(void *block, size_t len, struct perfmap **out)
{
	struct perfmap *m;
	struct layout l;
	struct head h;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, block, sizeof(h));
	if (!head_is_valid(&h, len))
		return -EBADMSG;
	l = layout_of(&h);
	m = perfmap_begin();
	*m = (struct perfmap){
		.lines = (struct map_line *)((char *)block + l.lines),
		.pieces = (struct piece *)((char *)block + l.pieces),
		.places = (struct map_place *)((char *)block + l.places),
		.pool = (char *)block + l.pool,
		.n_lines = h.n_lines,
		.cap_lines = h.n_lines,
		.n_pieces = h.n_pieces,
		.cap_pieces = h.n_pieces,
		.n_places = h.n_places,
		.cap_places = h.n_places,
		.pool_len = h.pool_len,
		.pool_cap = h.pool_len,
		.block = block,
		.skipped = h.skipped,
	};
	if (!pool_is_valid(m->pool, m->pool_len) || !lines_are_valid(m) || !places_are_valid(m) ||
	    !pieces_are_valid(m)) {
		m->block = m->lines = NULL;
		m->pieces = NULL;
		m->places = NULL;
		m->pool = NULL;
		perfmap_free(m);
		return -EBADMSG;
	}
	*out = m;
	return 0;
}
