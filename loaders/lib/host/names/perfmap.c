/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are kept in file order; overlaps are resolved once, by sweeping over the starts with a heap
 * of the open ranges, latest line on top. The result is a sorted list of disjoint pieces, at most
 * two for each line.
 */
#include "loaders/lib/host/names/perfmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/perfmap_parts.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define PIECE_BYTES \
	(64u << 10) /* of the file, at a time; a line has at most some 4100 that matter */

/* ---- lines ---- */

static const char *hex(const char *p, const char *end, uint64_t *out)
{
	uint64_t v = 0;
	const char *first;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (first = p; p < end; p++) {
		unsigned char c = (unsigned char)*p;
		unsigned int d = c >= '0' && c <= '9' ? c - '0' + 0u :
				 c >= 'a' && c <= 'f' ? c - 'a' + 10u :
				 c >= 'A' && c <= 'F' ? c - 'A' + 10u :
							99;

		if (d > 15)
			break;
		if (v >> 60)
			return NULL;
		v = v << 4 | d;
	}
	*out = v;
	return p == first ? NULL : p;
}

static bool line_parse(const char *p, const char *end, struct map_line *l, const char **name,
		       size_t *name_len)
{
	p = hex(p, end, &l->start);
	if (!p || p == end || *p++ != ' ')
		return false;
	p = hex(p, end, &l->size);
	if (!p || p == end || *p++ != ' ')
		return false;
	if (end > p && end[-1] == '\r')
		end--;
	*name = p;
	*name_len = (size_t)(end - p) < PERFMAP_NAME_MAX ? (size_t)(end - p) : PERFMAP_NAME_MAX;
	return l->size && l->size <= UINT64_MAX - l->start && *name_len;
}

static size_t grown(size_t n, size_t more, size_t cap, size_t first)
{
	size_t to = cap ? cap : first;

	while (n + more > to)
		to *= 2;
	return to;
}

/* Bytes that it takes with one more line, places and names: also while overlaps are resolved, with
 * two numbers and two pieces for each line. */
static bool has_room(struct perfmap *m, size_t name_bytes, size_t places)
{
	size_t lines = grown(m->n_lines, 1, m->cap_lines, 16),
	       bytes = grown(m->pool_len, name_bytes, m->pool_cap, 4096),
	       at = places ? grown(m->n_places, places, m->cap_places, 16) : m->cap_places;

	if (sizeof(*m) + lines * sizeof(*m->lines) + bytes + at * sizeof(*m->places) +
		    (m->n_lines + 1) * (2 * sizeof(uint32_t) + 2 * sizeof(*m->pieces)) >
	    PERFMAP_BYTES)
		m->full = true;
	return !m->full;
}

/* A NUL would end the name early: it becomes '?'. */
static uint32_t pool_add(struct perfmap *m, const char *name, size_t len)
{
	size_t at = m->pool_len, cap = grown(at, len + 1, m->pool_cap, 4096);

	if (cap != m->pool_cap)
		m->pool = mem_realloc(m->pool, m->pool_cap = cap);
	for (size_t i = 0; i < len; i++)
		m->pool[at + i] = name[i] ? name[i] : '?';
	m->pool[at + len] = 0;
	m->pool_len += len + 1;
	return (uint32_t)at;
}

static void line_read(struct perfmap *m, const char *p, size_t n)
{
	struct map_line l;
	const char *name;
	size_t name_len;

	if (++m->looked > PERFMAP_LINES)
		m->full = true;
	if (!n || m->full)
		return;
	if (!line_parse(p, p + n, &l, &name, &name_len)) {
		m->skipped++;
		return;
	}
	if (!has_room(m, name_len + 1, 0))
		return;
	l.name = pool_add(m, name, name_len);
	l.first_place = l.n_places = 0;
	mem_grow(m->lines, m->n_lines, m->cap_lines);
	m->lines[m->n_lines++] = l;
}

/* Whole lines; `last`: the end of the bytes ends a line too. Returns how many bytes it has read. */
static size_t read_lines(struct perfmap *m, const char *data, size_t len, bool last)
{
	size_t pos = 0;

	while (pos < len && !m->full) {
		const char *p = data + pos, *nl = memchr(p, '\n', len - pos);
		size_t n = nl ? (size_t)(nl - p) : len - pos;

		if (!nl && !last)
			break;
		line_read(m, p, n);
		pos += n + (nl != NULL);
	}
	return pos;
}

static uint32_t file_add(struct perfmap *m, const char *file)
{
	if (!m->last_file || strcmp(m->pool + m->last_file - 1, file))
		m->last_file = pool_add(m, file, strlen(file)) + 1;
	return m->last_file - 1;
}

/* At most: of names of files that differ from the one before. */
static size_t files_bytes(const struct perfmap *m, const struct perfmap_place *places, size_t n)
{
	const char *before = m->last_file ? m->pool + m->last_file - 1 : "";
	size_t sum = 0;

	for (size_t i = 0; i < n && sum <= PERFMAP_BYTES; i++) {
		if (strcmp(before, places[i].file))
			sum += strlen(places[i].file) + 1;
		before = places[i].file;
	}
	return sum;
}

struct perfmap *perfmap_begin(void)
{
	return mem_alloc(sizeof(struct perfmap));
}

bool perfmap_add(struct perfmap *m, uint64_t start, uint64_t size, const char *name, size_t len,
		 const struct perfmap_place *places, size_t n, uint64_t base)
{
	struct map_line l = {.start = start,
			     .size = size,
			     .name = NAMELESS,
			     .first_place = (uint32_t)m->n_places};

	if (!size || size > UINT64_MAX - start || m->pool_len > UINT32_MAX / 2 ||
	    m->n_places > UINT32_MAX / 2) {
		m->skipped++;
		return false;
	}
	if (len > PERFMAP_NAME_MAX)
		len = PERFMAP_NAME_MAX;
	if (!has_room(m, len + 1 + files_bytes(m, places, n), n))
		return false;
	if (len)
		l.name = pool_add(m, name, len);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = places[i].addr - base;

		if (places[i].addr < base || at >= size || at > UINT32_MAX ||
		    (l.n_places && m->places[m->n_places - 1].at > at))
			continue;
		mem_grow(m->places, m->n_places, m->cap_places);
		m->places[m->n_places++] = (struct map_place){
			(uint32_t)at, file_add(m, places[i].file), places[i].line};
		l.n_places++;
	}
	mem_grow(m->lines, m->n_lines, m->cap_lines);
	m->lines[m->n_lines++] = l;
	return true;
}

/* ---- overlaps ---- */

struct heap { /* of line numbers, the greatest on top */
	uint32_t *items;
	size_t n;
};

static void heap_push(struct heap *h, uint32_t v)
{
	size_t i = h->n++;

	while (i && h->items[(i - 1) / 2] < v) {
		h->items[i] = h->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->items[i] = v;
}

static void heap_pop(struct heap *h)
{
	uint32_t v = h->items[--h->n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n && h->items[child + 1] > h->items[child])
			child++;
		if (h->items[child] <= v)
			break;
		h->items[i] = h->items[child];
		i = child;
	}
	if (h->n)
		h->items[i] = v;
}

static void piece_add(struct perfmap *m, uint64_t start, uint64_t end, uint32_t line)
{
	struct piece *last = m->n_pieces ? &m->pieces[m->n_pieces - 1] : NULL;

	if (start >= end)
		return;
	if (last && last->line == line && last->end == start) {
		last->end = end;
		return;
	}
	m->pieces[m->n_pieces++] = (struct piece){start, end, line};
}

static uint64_t line_end(const struct perfmap *m, uint32_t line)
{
	return m->lines[line].start + m->lines[line].size;
}

/* Emit the pieces from `at` to `until`, dropping ranges that end before. */
static void sweep(struct perfmap *m, struct heap *open, uint64_t at, uint64_t until)
{
	while (open->n) {
		uint64_t end = line_end(m, open->items[0]);

		if (end > at) {
			piece_add(m, at, end < until ? end : until, open->items[0]);
			at = end;
		}
		if (end > until)
			return;
		heap_pop(open);
	}
}

static int by_start(const void *a, const void *b, void *ctx)
{
	const struct map_line *lines = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (lines[x].start != lines[y].start)
		return lines[x].start < lines[y].start ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void resolve(struct perfmap *m)
{
	cleanup_free uint32_t *order = mem_array(m->n_lines + 1, sizeof(*order));
	cleanup_free uint32_t *room = mem_array(m->n_lines + 1, sizeof(*room));
	struct heap open = {.items = room};
	uint64_t at = 0;

	m->pieces = mem_array(2 * m->n_lines + 1, sizeof(*m->pieces)); /* the most there can be */
	for (size_t i = 0; i < m->n_lines; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, m->n_lines, sizeof(*order), by_start, m->lines);
	for (size_t i = 0; i < m->n_lines; i++) {
		uint64_t start = m->lines[order[i]].start;

		sweep(m, &open, at, start);
		at = start;
		heap_push(&open, order[i]);
	}
	sweep(m, &open, at, UINT64_MAX);
	m->cap_pieces = m->n_pieces + 1;
	m->pieces = mem_realloc(m->pieces, m->cap_pieces * sizeof(*m->pieces));
}

bool perfmap_full(const struct perfmap *m)
{
	return m->full;
}

void perfmap_end(struct perfmap *m)
{
	resolve(m);
}

void perfmap_parse(const char *data, size_t len, struct perfmap **out)
{
	struct perfmap *m = perfmap_begin();

	if (len > PERFMAP_FILE_MAX) {
		const char *nl = memrchr(data, '\n', PERFMAP_FILE_MAX);

		len = nl ? (size_t)(nl - data) : 0;
	}
	read_lines(m, data, len, true);
	resolve(m);
	*out = m;
}

void perfmap_free(struct perfmap *m)
{
	if (!m)
		return;
	if (m->block) {
		free(m->block);
	} else {
		free(m->lines);
		free(m->pieces);
		free(m->places);
		free(m->pool);
	}
	free(m);
}

/* The last place at or before `at`. */
static void place_find(const struct perfmap *m, const struct map_line *l, uint64_t at,
		       struct perfmap_entry *out)
{
	size_t lo = l->first_place, hi = lo + l->n_places;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->places[mid].at <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->first_place)
		return;
	out->file = m->pool + m->places[lo - 1].file;
	out->line = m->places[lo - 1].line;
}

bool perfmap_find(const struct perfmap *m, uint64_t addr, struct perfmap_entry *out)
{
	size_t lo = 0, hi = m->n_pieces;
	const struct map_line *l;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->pieces[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == m->n_pieces || m->pieces[lo].start > addr)
		return false;
	l = &m->lines[m->pieces[lo].line];
	if (l->name == NAMELESS)
		return false;
	*out = (struct perfmap_entry){
		.name = m->pool + l->name, .start = l->start, .size = l->size};
	place_find(m, l, addr - l->start, out);
	return true;
}

size_t perfmap_count(const struct perfmap *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_lines; i++)
		n += m->lines[i].name != NAMELESS;
	return n;
}

size_t perfmap_skipped(const struct perfmap *m)
{
	return m->skipped;
}

size_t perfmap_bytes(const struct perfmap *m)
{
	return sizeof(*m) + m->cap_lines * sizeof(*m->lines) + m->cap_pieces * sizeof(*m->pieces) +
	       m->cap_places * sizeof(*m->places) + m->pool_cap;
}

bool perfmap_range(const struct perfmap *m, size_t i, uint64_t *start, uint64_t *end,
		   const char **name)
{
	uint32_t at;

	if (i >= m->n_pieces)
		return false;
	at = m->lines[m->pieces[i].line].name;
	*start = m->pieces[i].start;
	*end = m->pieces[i].end;
	*name = at == NAMELESS ? "" : m->pool + at;
	return true;
}

/* ---- the file ---- */

/* In pieces. Of a line that is longer than a piece the first piece is read, the rest passed over.
 */
static int lines_stream(int fd, off_t size, struct perfmap *m)
{
	cleanup_free char *buf = mem_alloc(PIECE_BYTES);
	size_t have = 0, used;
	bool cut = false; /* what comes up to the next newline belongs to a line that was read */
	off_t at = 0;

	while (at < size && !m->full) {
		size_t want = PIECE_BYTES - have;
		ssize_t got = pread(fd, buf + have,
				    want < (size_t)(size - at) ? want : (size_t)(size - at), at);
		char *nl;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		at += got;
		have += (size_t)got;
		if (cut) {
			nl = memchr(buf, '\n', have);
			used = nl ? (size_t)(nl + 1 - buf) : have;
			memmove(buf, buf + used, have - used);
			have -= used;
			cut = !nl;
		}
		used = read_lines(m, buf, have, false);
		if (!used && have == PIECE_BYTES && !m->full) {
			line_read(m, buf, have);
			used = have;
			cut = true;
		}
		memmove(buf, buf + used, have - used);
		have -= used;
	}
	/* of a file that is cut the last line may be incomplete */
	if (size < (off_t)PERFMAP_FILE_MAX)
		read_lines(m, buf, have, true);
	return m->full ? -E2BIG : 0;
}

int perfmap_stream(int fd, uint64_t size, struct perfmap **out)
{
	struct perfmap *m = perfmap_begin();
	int rc = lines_stream(fd, (off_t)(size < PERFMAP_FILE_MAX ? size : PERFMAP_FILE_MAX), m);

	if (rc) {
		perfmap_free(m);
		return rc;
	}
	resolve(m);
	*out = m;
	return 0;
}
