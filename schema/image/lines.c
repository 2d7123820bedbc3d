/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: format.h, 8 to 12, specifies the bytes. Opening an index does not check rows and nodes:
 * each number is bounded where it is used, and a row that does not fit ends its block.
 */
#include "schema/image/lines.h"

#include <string.h>
#include <unistd.h>

#include "schema/image/inside.h"

struct cursor {
	const uint8_t *at, *end;
	bool bad; /* a number did not fit */
};

static uint32_t number(struct cursor *c)
{
	uint32_t v = 0;

	for (unsigned shift = 0; shift < 32; shift += 7) {
		uint8_t byte;

		if (c->at >= c->end)
			break;
		byte = *c->at++;
		v |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

/* Wraps around where it is nonsense: what comes out is checked where it is used. */
static uint32_t zigzag(uint32_t v)
{
	return (v >> 1) ^ (0u - (v & 1));
}

bool image_runs_load(struct image_runs_part *r, const void *data, size_t size)
{
	const uint8_t *p = data;
	struct image_runs head;
	uint64_t blocks_size;

	if (size < sizeof(head))
		return false;
	memcpy(&head, p, sizeof(head));
	blocks_size = (uint64_t)head.block_count * sizeof(*r->blocks);
	if (sizeof(head) + blocks_size + head.rows_size + head.nodes_size != size)
		return false;
	*r = (struct image_runs_part){.blocks = (const void *)(p + sizeof(head)),
				      .block_count = head.block_count,
				      .row_count = head.row_count,
				      .rows = p + sizeof(head) + blocks_size,
				      .rows_size = head.rows_size,
				      .nodes_size = head.nodes_size};
	r->nodes = r->rows + r->rows_size;
	return true;
}

/* The rows of the last block that begins at `want` or before. false: none does. */
static bool block_find(const struct image_runs_part *r, uint32_t want, uint32_t *start,
		       struct cursor *rows)
{
	size_t lo = 0, hi = r->block_count, from, to;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->blocks[mid].start <= want)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return false;
	from = r->blocks[lo - 1].at;
	to = lo < r->block_count ? r->blocks[lo].at : r->rows_size;
	if (from > to || to > r->rows_size)
		return false;
	*start = r->blocks[lo - 1].start;
	*rows = (struct cursor){.at = r->rows + from, .end = r->rows + to};
	return true;
}

/* ---- LINES ---- */

struct line_row {
	uint32_t file, line, column;
	bool known;
};

#define ROW_DELTA    0x0fu
#define ROW_MORE     0x0fu
#define ROW_LINE     0x30u
#define ROW_LINE_INC 0x10u
#define ROW_LINE_ADD 0x20u
#define ROW_UNKNOWN  0x30u
#define ROW_COLUMN   0x40u
#define ROW_FILE     0x80u

static bool line_find(const struct image *img, uint32_t want, struct line_row *out)
{
	struct line_row row = {0};
	struct cursor c;
	uint32_t start;
	uint64_t addr;

	*out = (struct line_row){0};
	if (!block_find(&img->lines, want, &start, &c))
		return false;
	addr = start;
	for (int n = 0; n < IMAGE_BLOCK_ROWS && c.at < c.end; n++) {
		const uint8_t head = *c.at++;

		addr += head & ROW_DELTA;
		if ((head & ROW_DELTA) == ROW_MORE)
			addr += number(&c);
		if (addr > want)
			break;
		row.known = (head & ROW_LINE) != ROW_UNKNOWN;
		if ((head & ROW_LINE) == ROW_LINE_INC)
			row.line++;
		else if ((head & ROW_LINE) == ROW_LINE_ADD)
			row.line += zigzag(number(&c));
		if (head & ROW_COLUMN)
			row.column = number(&c);
		if (head & ROW_FILE)
			row.file = number(&c);
		if (c.bad)
			return false;
		*out = row;
	}
	return out->known;
}

/* ---- INLINES ---- */

struct node {
	uint32_t back, name, file, line, column;
};

/* The innermost inlined function's node. false: nothing is inlined here. */
static bool inline_find(const struct image *img, uint32_t want, uint32_t *out)
{
	uint32_t start, node = 0;
	bool inside = false;
	struct cursor c;
	uint64_t addr;

	if (!block_find(&img->inlines, want, &start, &c))
		return false;
	addr = start;
	for (int n = 0; n < IMAGE_BLOCK_ROWS && c.at < c.end; n++) {
		uint32_t to;

		addr += number(&c);
		if (addr > want)
			break;
		to = number(&c);
		if (c.bad)
			return false;
		inside = to;
		if (to)
			node += zigzag(to - 1);
		*out = node;
	}
	return inside;
}

static bool node_read(const struct image *img, uint32_t at, struct node *out)
{
	const struct image_runs_part *r = &img->inlines;
	struct cursor c = {.at = r->nodes + at, .end = r->nodes + r->nodes_size};

	if (at >= r->nodes_size)
		return false;
	out->back = number(&c);
	out->name = number(&c);
	out->file = number(&c);
	out->line = number(&c);
	out->column = number(&c);
	return !c.bad && out->back <= at;
}

/* ---- questions ---- */

static const char *file_name(const struct image *img, uint32_t file)
{
	return file && file <= img->line_file_count ? image_string(img, img->line_files[file - 1]) :
						      NULL;
}

size_t image_lines_at(const struct image *img, uint64_t vaddr, struct image_source_frame *out,
		      size_t max)
{
	const uint64_t want = vaddr - img->symbol_base;
	struct line_row row = {0};
	bool known, inside;
	uint32_t at = 0;
	size_t n = 0;

	if (vaddr < img->symbol_base || want > UINT32_MAX || !max)
		return 0;
	known = line_find(img, (uint32_t)want, &row);
	inside = inline_find(img, (uint32_t)want, &at);
	if (!known && !inside)
		return 0;
	if (!known)
		row = (struct line_row){0};
	for (int depth = 0; inside && depth < IMAGE_INLINE_DEPTH_MAX && n < max; depth++) {
		struct node node;
		const char *name;

		if (!node_read(img, at, &node))
			break;
		name = image_string(img, node.name);
		out[n++] = (struct image_source_frame){.function = name ? name : "",
						       .inlined = true,
						       .line = row.line,
						       .file = file_name(img, row.file),
						       .column = row.column};
		row = (struct line_row){
			.file = node.file, .line = node.line, .column = node.column};
		inside = node.back;
		at -= node.back;
	}
	if (n < max)
		out[n++] = (struct image_source_frame){
			.file = file_name(img, row.file), .line = row.line, .column = row.column};
	return n;
}

bool image_has_lines(const struct image *img)
{
	return img->lines.block_count > 0;
}

bool image_lines_later(int fd)
{
	struct image_header h;
	struct image_section s;
	struct image_ident_record id;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) ||
	    memcmp(h.magic, IMAGE_MAGIC, sizeof(h.magic)))
		return false;
	for (uint32_t i = 0; i < h.section_count && i < IMAGE_SECTIONS_MAX; i++) {
		if (pread(fd, &s, sizeof(s), (off_t)(sizeof(h) + i * sizeof(s))) != sizeof(s))
			return false;
		if (s.kind == IMAGE_SECTION_IDENT)
			return s.offset <= INT64_MAX &&
			       pread(fd, &id, sizeof(id), (off_t)s.offset) == sizeof(id) &&
			       (id.flags & IMAGE_IDENT_LINES_LATER);
	}
	return false;
}

const char *image_lines_note(const struct image *img)
{
	return image_string(img, img->lines_note);
}

uint32_t image_function_line(const struct image *img, uint64_t vaddr)
{
	struct image_source_frame frames[IMAGE_INLINE_DEPTH_MAX + 1];
	size_t n = image_lines_at(img, vaddr, frames, IMAGE_INLINE_DEPTH_MAX + 1);

	return n ? frames[n - 1].line : 0;
}

struct image_lines_size image_lines_size(const struct image *img)
{
	return (struct image_lines_size){
		.files = img->line_file_count,
		.rows = img->lines.row_count,
		.row_bytes =
			img->lines.rows_size + img->lines.block_count * sizeof(struct image_block),
		.inline_rows = img->inlines.row_count,
		.inline_bytes = img->inlines.rows_size + img->inlines.nodes_size +
				img->inlines.block_count * sizeof(struct image_block)};
}
