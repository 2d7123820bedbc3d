/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/lines/linecode.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/elf/strtab.h"
#include "loaders/index/lines/lineset.h"
#include "schema/base/cleanup.h"
#include "schema/image/format.h"

/* ---- bytes ---- */

struct bytes {
	uint8_t *at;
	size_t len, cap;
	int rc; /* the first failure */
};

static void bytes_release(struct bytes *b)
{
	free(b->at);
}
#define cleanup_bytes __attribute__((cleanup(bytes_release)))

static void bytes_add(struct bytes *b, const void *data, size_t len)
{
	while (!b->rc && b->len + len > b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 4096;
		uint8_t *p = cap > INDEX_SIZE_MAX * 2 ? NULL : realloc(b->at, cap);

		if (!p) {
			b->rc = cap > INDEX_SIZE_MAX * 2 ? -EFBIG : -ENOMEM;
			return;
		}
		b->at = p;
		b->cap = cap;
	}
	if (b->rc || !len)
		return;
	memcpy(b->at + b->len, data, len);
	b->len += len;
}

static size_t number_put(uint8_t *to, uint32_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

static uint32_t zigzag(uint32_t delta)
{
	return delta << 1 ^ (delta >> 31 ? ~0u : 0);
}

/* ---- runs: rows in blocks ---- */

struct run {
	struct bytes rows, blocks, nodes;
	uint32_t count;
	uint32_t addr; /* of the last row */
};

static void run_release(struct run *r)
{
	bytes_release(&r->rows);
	bytes_release(&r->blocks);
	bytes_release(&r->nodes);
}

/* Begins a row; true: it is the first of a new block, whose state is fresh. `delta`: what to add to
 * the address. */
static bool run_row(struct run *r, uint32_t addr, uint32_t *delta)
{
	const bool fresh = r->count++ % IMAGE_BLOCK_ROWS == 0;

	*delta = fresh ? 0 : addr - r->addr;
	r->addr = addr;
	if (fresh)
		bytes_add(&r->blocks,
			  &(struct image_block){.start = addr, .at = (uint32_t)r->rows.len},
			  sizeof(struct image_block));
	return fresh;
}

/* The section's bytes into a fresh buffer. */
static int run_finish(const struct run *r, uint8_t **out, size_t *size)
{
	struct image_runs head = {.block_count =
					  (uint32_t)(r->blocks.len / sizeof(struct image_block)),
				  .row_count = r->count,
				  .rows_size = (uint32_t)r->rows.len,
				  .nodes_size = (uint32_t)r->nodes.len};
	cleanup_bytes struct bytes all = {0};

	all.rc = r->rows.rc ? r->rows.rc : r->blocks.rc ? r->blocks.rc : r->nodes.rc;
	bytes_add(&all, &head, sizeof(head));
	bytes_add(&all, r->blocks.at, r->blocks.len);
	bytes_add(&all, r->rows.at, r->rows.len);
	bytes_add(&all, r->nodes.at, r->nodes.len);
	if (all.rc)
		return all.rc;
	*size = all.len;
	*out = take_ptr(all.at);
	return 0;
}

/* ---- the strings that are used ---- */

struct used {
	const struct strtab *from;
	const struct linecode_strings *to;
	uint32_t *numbers; /* own; by offset in `from`: its number in the index, 0: not used yet */
	uint32_t *files;   /* own; NULL for names */
	size_t file_count;
};

static int used_init(struct used *u, const struct strtab *from, const struct linecode_strings *to,
		     bool files)
{
	u->from = from;
	u->to = to;
	u->numbers = calloc(from->len + 1, sizeof(*u->numbers));
	u->files = files ? calloc(from->used + 1, sizeof(*u->files)) : NULL;
	return u->numbers && (u->files || !files) ? 0 : -ENOMEM;
}

static void used_release(struct used *u)
{
	free(u->numbers);
	free(u->files);
}
#define cleanup_used __attribute__((cleanup(used_release)))

static int used_file(struct used *u, uint32_t file, uint32_t *number)
{
	int rc = 0;

	*number = 0;
	if (!file)
		return 0;
	if (!u->numbers[file]) {
		rc = u->to->add(u->to->ctx, strtab_get(u->from, file), false,
				&u->files[u->file_count]);
		if (!rc)
			u->numbers[file] = (uint32_t)++u->file_count;
	}
	*number = u->numbers[file];
	return rc;
}

static int used_name(struct used *u, uint32_t name, uint32_t *offset)
{
	const char *marked = strtab_get(u->from, name);
	int rc = 0;

	if (name && !u->numbers[name])
		rc = u->to->add(u->to->ctx, marked + 1, *marked == 'm', &u->numbers[name]);
	*offset = u->numbers[name];
	return rc;
}

/* ---- LINES ---- */

struct line_writer {
	struct run run;
	struct used *files;
	uint32_t file, line, column; /* the state */
	bool known;
};

static void lines_unknown(struct line_writer *w, uint32_t addr)
{
	uint8_t row[8];
	uint32_t delta;
	size_t n = 1;

	if (!w->known)
		return;
	if (run_row(&w->run, addr, &delta))
		w->file = w->line = w->column = 0;
	row[0] = (uint8_t)((delta < 15 ? delta : 15) | 0x30);
	if (delta >= 15)
		n += number_put(row + n, delta - 15);
	bytes_add(&w->run.rows, row, n);
	w->known = false;
}

static int lines_row(struct line_writer *w, uint32_t addr, const struct lineset_row_record *r)
{
	uint32_t delta, file = 0, step;
	uint8_t row[24];
	size_t n = 1;
	int rc = used_file(w->files, r->file, &file);

	if (rc || (w->known && file == w->file && r->line == w->line && r->column == w->column))
		return rc;
	if (run_row(&w->run, addr, &delta))
		w->file = w->line = w->column = 0;
	step = r->line - w->line;
	row[0] = (uint8_t)((delta < 15 ? delta : 15) |
			   (step == 0 ? 0 :
			    step == 1 ? 0x10 :
					0x20) |
			   (r->column != w->column ? 0x40 : 0) | (file != w->file ? 0x80 : 0));
	if (delta >= 15)
		n += number_put(row + n, delta - 15);
	if (step > 1)
		n += number_put(row + n, zigzag(step));
	if (r->column != w->column)
		n += number_put(row + n, r->column);
	if (file != w->file)
		n += number_put(row + n, file);
	bytes_add(&w->run.rows, row, n);
	w->file = file;
	w->line = r->line;
	w->column = r->column;
	w->known = true;
	return 0;
}

/* What of a sequence lies at `from` or behind. */
static int lines_sequence(struct line_writer *w, const struct lineset_sequence *q,
			  const struct lineset_row_record *rows, uint32_t from)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < q->count && rows[i].addr < q->hi; i++)
		if (i + 1 == q->count || rows[i + 1].addr > from)
			rc = lines_row(w, rows[i].addr > from ? rows[i].addr : from, &rows[i]);
	return rc;
}

static int by_start(const void *a, const void *b)
{
	const struct lineset_sequence *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int lines_make(struct lineset *s, struct used *files, struct linecode *out)
{
	struct line_writer w = {.files = files};
	uint32_t end = 0;
	int rc = 0;

	if (s->sequence_count)
		qsort(s->sequences, s->sequence_count, sizeof(*s->sequences), by_start);
	for (size_t i = 0; !rc && i < s->sequence_count; i++) {
		const struct lineset_sequence *q = &s->sequences[i];

		if (i && q->hi <= end)
			continue;
		if (q->lo > end)
			lines_unknown(&w, end);
		rc = lines_sequence(&w, q, s->rows + q->first, q->lo > end ? q->lo : end);
		end = q->hi;
	}
	lines_unknown(&w, end);
	if (!rc)
		rc = run_finish(&w.run, &out->lines, &out->lines_size);
	run_release(&w.run);
	return rc;
}

/* ---- INLINES ---- */

struct inline_writer {
	struct run run;
	const struct lineset *set;
	struct used *files, *names;
	uint32_t *offsets; /* of each node that is written, plus one */
	uint32_t node;     /* the state: offset */
	uint32_t last;     /* node (not offset) that counts now */
};

static int node_write(struct inline_writer *w, uint32_t index)
{
	const struct lineset_node *node = &w->set->nodes[index];
	const uint32_t at = (uint32_t)w->run.nodes.len;
	uint32_t name = 0, file = 0;
	uint8_t buf[32];
	size_t n;
	int rc = used_name(w->names, node->name, &name);

	if (!rc)
		rc = used_file(w->files, node->file, &file);
	if (rc)
		return rc;
	n = number_put(buf, node->parent ? at - (w->offsets[node->parent] - 1) : 0);
	n += number_put(buf + n, name);
	n += number_put(buf + n, file);
	n += number_put(buf + n, node->line);
	n += number_put(buf + n, node->column);
	bytes_add(&w->run.nodes, buf, n);
	w->offsets[index] = at + 1;
	return 0;
}

/* The node and those around it, the outermost first. */
static int nodes_write(struct inline_writer *w, uint32_t index)
{
	uint32_t chain[IMAGE_INLINE_DEPTH_MAX];
	size_t n = 0;
	int rc = 0;

	for (; index && !w->offsets[index] && n < IMAGE_INLINE_DEPTH_MAX;
	     index = w->set->nodes[index].parent)
		chain[n++] = index;
	while (!rc && n)
		rc = node_write(w, chain[--n]);
	return rc;
}

static int inlines_row(void *ctx, uint32_t addr, uint32_t index)
{
	struct inline_writer *w = ctx;
	uint32_t delta, to = 0;
	uint8_t row[16];
	size_t n;
	int rc;

	if (index == w->last)
		return 0;
	rc = nodes_write(w, index);
	if (rc || w->run.nodes.rc)
		return rc ? rc : w->run.nodes.rc;
	if (run_row(&w->run, addr, &delta))
		w->node = 0;
	w->last = index;
	if (index) {
		to = zigzag(w->offsets[index] - 1 - w->node) + 1;
		w->node = w->offsets[index] - 1;
	}
	n = number_put(row, delta);
	n += number_put(row + n, to);
	bytes_add(&w->run.rows, row, n);
	return 0;
}

/*
 * Which of the ranges that overlap counts at which address: one sweep over the addresses. A heap
 * holds the ranges around the present address, with the one that came last on top; a range that has
 * ended is removed when it comes to the top. So the cost is n log n, however the ranges lie.
 */
struct heap {
	const struct lineset_range_record **at; /* at[0] has the highest order */
	size_t count;
};

static void heap_push(struct heap *h, const struct lineset_range_record *r)
{
	size_t i = h->count++;

	for (; i && h->at[(i - 1) / 2]->order < r->order; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = r;
}

static void heap_pop(struct heap *h)
{
	const struct lineset_range_record *r = h->at[--h->count];
	size_t i = 0;

	for (size_t child = 1; child < h->count; child = 2 * i + 1) {
		if (child + 1 < h->count && h->at[child + 1]->order > h->at[child]->order)
			child++;
		if (h->at[child]->order < r->order)
			break;
		h->at[i] = h->at[child];
		i = child;
	}
	h->at[i] = r;
}

static int by_address(const void *a, const void *b)
{
	const struct lineset_range_record *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Calls `row` with rising addresses: from `addr` on, `node` counts (0: none), until the next call.
 * Sorts `ranges`. Where `row` says other than 0, that comes back at once. -ENOMEM. */
static int linepaint(struct lineset_range_record *ranges, size_t count,
		     int (*row)(void *ctx, uint32_t addr, uint32_t node), void *ctx)
{
	cleanup_free const struct lineset_range_record **places =
		calloc(count + 1, sizeof(*places));
	struct heap h = {.at = places};
	uint32_t at = 0;
	int rc = 0;

	if (!places)
		return -ENOMEM;
	if (count)
		qsort(ranges, count, sizeof(*ranges), by_address);
	for (size_t i = 0; !rc && (i < count || h.count);) {
		if (!h.count)
			at = ranges[i].lo;
		while (i < count && ranges[i].lo <= at)
			heap_push(&h, &ranges[i++]);
		while (h.count && h.at[0]->hi <= at)
			heap_pop(&h);
		rc = row(ctx, at, h.count ? h.at[0]->node : 0);
		if (h.count)
			at = i < count && ranges[i].lo < h.at[0]->hi ? ranges[i].lo : h.at[0]->hi;
	}
	return rc;
}

static int inlines_make(struct lineset *s, struct used *files, struct used *names,
			struct linecode *out)
{
	cleanup_free uint32_t *offsets = calloc(s->node_count + 1, sizeof(*offsets));
	struct inline_writer w = {.set = s, .files = files, .names = names, .offsets = offsets};
	int rc = offsets ? linepaint(s->ranges, s->range_count, inlines_row, &w) : -ENOMEM;

	if (!rc)
		rc = run_finish(&w.run, &out->inlines, &out->inlines_size);
	run_release(&w.run);
	return rc;
}

void linecode_release(struct linecode *c)
{
	free(c->files);
	free(c->lines);
	free(c->inlines);
	*c = (struct linecode){0};
}

int linecode_make(struct lineset *s, const struct linecode_strings *strings, struct linecode *out)
{
	cleanup_used struct used files = {0};
	cleanup_used struct used names = {0};
	struct linecode c = {0};
	int rc = used_init(&files, &s->files, strings, true);

	if (!rc)
		rc = used_init(&names, &s->names, strings, false);
	if (!rc)
		rc = lines_make(s, &files, &c);
	if (!rc)
		rc = inlines_make(s, &files, &names, &c);
	if (rc) {
		linecode_release(&c);
		return rc;
	}
	c.files = take_ptr(files.files);
	c.file_count = files.file_count;
	*out = c;
	return 0;
}
