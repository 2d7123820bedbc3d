/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the sections of the DWARF 5 standard. */
#include "loaders/index/lines/dwline.h"

#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/leb.h"

#define FILES_MAX   (1u << 20)
#define FORMATS_MAX 32

/* ---- the names of the header ---- */

struct dirs {
	const char **at; /* own; borrowed strings */
	size_t count, cap;
};

static bool dirs_add(struct dirs *d, const char *name)
{
	if (d->count == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 16;
		const char **p = cap > FILES_MAX ? NULL : realloc(d->at, cap * sizeof(*p));

		if (!p)
			return false;
		d->at = p;
		d->cap = cap;
	}
	d->at[d->count++] = name;
	return true;
}

static bool files_add(struct dwline *t, uint32_t number)
{
	if (t->file_count == t->file_cap) {
		size_t cap = t->file_cap ? t->file_cap * 2 : 16;
		uint32_t *p = cap > FILES_MAX ? NULL : realloc(t->files, cap * sizeof(*p));

		if (!p)
			return false;
		t->files = p;
		t->file_cap = cap;
	}
	t->files[t->file_count++] = number;
	return true;
}

/* A relative directory is so to the one that the compiler ran in. */
static uint32_t path_number(struct lineset *set, const char *unit_dir, const char *dir,
			    const char *name)
{
	const bool whole = *name == '/', rooted = dir && *dir == '/';
	char path[3 * PATH_MAX];

	if (!*name)
		return 0;
	if (whole || (!dir && !unit_dir))
		return lineset_file(set, name);
	if (!dir || rooted || !unit_dir)
		snprintf(path, sizeof(path), "%s/%s", dir ? dir : unit_dir, name);
	else
		snprintf(path, sizeof(path), "%s/%s/%s", unit_dir, dir, name);
	return lineset_file(set, path);
}

/* DWARF 2 to 4: lists that end in an empty name; directory 0 is the unit's, file 0 means no file.
 */
static bool names_read_old(struct dwline *t, struct cursor *c, struct dirs *dirs,
			   const char *unit_dir, struct lineset *set)
{
	const char *name;
	size_t len = 0;

	if (!dirs_add(dirs, NULL) || !files_add(t, 0))
		return false;
	while ((name = cursor_str(c, &len)) && len)
		if (!dirs_add(dirs, name))
			return false;
	while ((name = cursor_str(c, &len)) && len) {
		const uint64_t dir = leb_unsigned(c);

		leb_unsigned(c); /* time */
		leb_unsigned(c); /* size */
		if (!files_add(t, path_number(set, unit_dir,
					      dir < dirs->count ? dirs->at[dir] : NULL, name)))
			return false;
	}
	return !c->bad;
}

/* ---- DWARF 5: lists that describe themselves (6.2.4.1) ---- */

struct format {
	uint64_t content[FORMATS_MAX], form[FORMATS_MAX];
	size_t count;
};

struct entry {
	const char *name;
	uint64_t dir;
};

static const char *string_at(const struct dwline_bytes *b, uint64_t offset)
{
	const char *s = b->data;

	return offset < b->size && memchr(s + offset, 0, b->size - offset) ? s + offset : NULL;
}

static uint64_t offset_read(struct cursor *c, uint8_t size)
{
	return size == 8 ? cursor_u64(c) : cursor_u32(c);
}

/* One value: *number or *str is set, or it is stepped over. Unknown forms are bad: their length is
 * not known. */
static void value_read(struct cursor *c, const struct dwline_sections *s, uint8_t offset_size,
		       uint64_t form, uint64_t *number, const char **str)
{
	size_t len = 0;

	*number = 0;
	*str = NULL;
	switch (form) {
	case DW_FORM_string:
		*str = cursor_str(c, &len);
		break;
	case DW_FORM_line_strp:
		*str = string_at(&s->line_str, offset_read(c, offset_size));
		break;
	case DW_FORM_strp:
		*str = string_at(&s->str, offset_read(c, offset_size));
		break;
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		offset_read(c, offset_size);
		break;
	case DW_FORM_udata:
		*number = leb_unsigned(c);
		break;
	case DW_FORM_data1:
		*number = cursor_u8(c);
		break;
	case DW_FORM_data2:
		*number = cursor_u16(c);
		break;
	case DW_FORM_data4:
		*number = cursor_u32(c);
		break;
	case DW_FORM_data8:
		*number = cursor_u64(c);
		break;
	case DW_FORM_data16:
		cursor_bytes(c, 16);
		break;
	case DW_FORM_block1:
		cursor_bytes(c, cursor_u8(c));
		break;
	case DW_FORM_block:
		cursor_bytes(c, leb_unsigned(c));
		break;
	default:
		c->bad = true;
	}
}

static void format_read(struct cursor *c, struct format *f)
{
	f->count = cursor_u8(c);
	if (f->count > FORMATS_MAX)
		c->bad = true;
	for (size_t i = 0; i < f->count && !c->bad; i++) {
		f->content[i] = leb_unsigned(c);
		f->form[i] = leb_unsigned(c);
	}
}

static struct entry entry_read(struct cursor *c, const struct dwline_sections *s,
			       uint8_t offset_size, const struct format *f)
{
	struct entry e = {0};

	for (size_t i = 0; i < f->count && !c->bad; i++) {
		uint64_t number;
		const char *str;

		value_read(c, s, offset_size, f->form[i], &number, &str);
		if (f->content[i] == DW_LNCT_path)
			e.name = str;
		else if (f->content[i] == DW_LNCT_directory_index)
			e.dir = number;
	}
	return e;
}

static bool names_read(struct dwline *t, struct cursor *c, const struct dwline_sections *s,
		       struct dirs *dirs, const char *unit_dir, struct lineset *set)
{
	struct format format;
	uint64_t n;

	format_read(c, &format);
	n = leb_unsigned(c);
	for (uint64_t i = 0; i < n && format.count && !c->bad; i++)
		if (!dirs_add(dirs, entry_read(c, s, t->offset_size, &format).name))
			return false;
	format_read(c, &format);
	n = leb_unsigned(c);
	for (uint64_t i = 0; i < n && format.count && !c->bad; i++) {
		const struct entry e = entry_read(c, s, t->offset_size, &format);
		const char *dir = e.dir < dirs->count ? dirs->at[e.dir] : NULL;

		if (!files_add(t, e.name ? path_number(set, unit_dir, dir, e.name) : 0))
			return false;
	}
	return !c->bad;
}

/* ---- the header (6.2.4) ---- */

/* The table's bytes from behind its length, as long as it says. */
static struct cursor unit_cut(const struct dwline_sections *s, uint64_t offset,
			      uint8_t *offset_size)
{
	struct cursor c = cursor_init(s->line.data, s->line.size);
	uint64_t len;

	if (offset > s->line.size)
		c.bad = true;
	cursor_seek(&c, offset);
	len = cursor_u32(&c);
	*offset_size = len == 0xffffffff ? 8 : 4;
	if (*offset_size == 8)
		len = cursor_u64(&c);
	if (len > cursor_left(&c))
		c.bad = true;
	else
		c.len = c.pos + len;
	return c;
}

static bool header_read(struct dwline *t, struct cursor *c, size_t *program)
{
	uint64_t len;

	t->version = cursor_u16(c);
	if (t->version < 2 || t->version > 5)
		return false;
	if (t->version >= 5)
		cursor_bytes(c, 2); /* sizes of address and segment selector */
	len = offset_read(c, t->offset_size);
	if (len > cursor_left(c))
		return false;
	*program = c->pos + len;
	t->min_length = cursor_u8(c);
	t->max_ops = t->version >= 4 ? cursor_u8(c) : 1;
	cursor_u8(c); /* default_is_stmt */
	t->line_base = (int8_t)cursor_u8(c);
	t->line_range = cursor_u8(c);
	t->opcode_base = cursor_u8(c);
	for (unsigned i = 1; i < t->opcode_base; i++)
		t->lengths[i] = cursor_u8(c);
	return !c->bad && t->line_range && t->opcode_base;
}

bool dwline_open(struct dwline *t, const struct dwline_sections *s, uint64_t offset,
		 const char *dir, struct lineset *set)
{
	struct dirs dirs = {0};
	struct cursor c;
	size_t program = 0;
	bool ok;

	*t = (struct dwline){0};
	c = unit_cut(s, offset, &t->offset_size);
	ok = header_read(t, &c, &program);
	if (ok && t->version >= 5)
		ok = names_read(t, &c, s, &dirs, dir, set);
	else if (ok)
		ok = names_read_old(t, &c, &dirs, dir, set);
	free(dirs.at);
	if (!ok) {
		dwline_release(t);
		return false;
	}
	cursor_seek(&c, program);
	t->program = c;
	return true;
}

void dwline_release(struct dwline *t)
{
	free(t->files);
	*t = (struct dwline){0};
}

uint32_t dwline_file(const struct dwline *t, uint64_t number)
{
	return number < t->file_count ? t->files[number] : 0;
}

/* ---- the program (6.2.5) ---- */

struct state {
	uint64_t addr, op_index, file, column;
	uint32_t line;
};

static const struct state fresh = {.file = 1, .line = 1};

static void addr_advance(const struct dwline *t, struct state *st, uint64_t ops)
{
	if (t->max_ops <= 1) {
		st->addr += ops * t->min_length;
		return;
	}
	st->addr += (st->op_index + ops) / t->max_ops * t->min_length;
	st->op_index = (st->op_index + ops) % t->max_ops;
}

static void row_add(const struct dwline *t, const struct state *st, struct lineset *set)
{
	lineset_row(set, st->addr, dwline_file(t, st->file), st->line <= INT32_MAX ? st->line : 0,
		    st->column <= UINT32_MAX ? (uint32_t)st->column : 0);
}

static void extended(struct cursor *c, struct state *st, struct lineset *set)
{
	const uint64_t len = leb_unsigned(c);
	const size_t end = c->pos + len;
	uint8_t op;

	if (!len || len > cursor_left(c)) {
		c->bad = c->bad || len;
		return;
	}
	op = cursor_u8(c);
	if (op == DW_LNE_end_sequence) {
		lineset_end(set, st->addr);
		*st = fresh;
	} else if (op == DW_LNE_set_address) {
		st->addr = len == 9 ? cursor_u64(c) : len == 5 ? cursor_u32(c) : 0;
		st->op_index = 0;
	}
	cursor_seek(c, end);
}

static void standard(const struct dwline *t, struct cursor *c, uint8_t op, struct state *st,
		     struct lineset *set)
{
	switch (op) {
	case DW_LNS_copy:
		row_add(t, st, set);
		break;
	case DW_LNS_advance_pc:
		addr_advance(t, st, leb_unsigned(c));
		break;
	case DW_LNS_advance_line:
		st->line += (uint32_t)leb_signed(c);
		break;
	case DW_LNS_set_file:
		st->file = leb_unsigned(c);
		break;
	case DW_LNS_set_column:
		st->column = leb_unsigned(c);
		break;
	case DW_LNS_const_add_pc:
		addr_advance(t, st, (255u - t->opcode_base) / t->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		st->addr += cursor_u16(c);
		st->op_index = 0;
		break;
	default: /* those that change nothing here, and those of later standards */
		for (unsigned i = 0; i < t->lengths[op]; i++)
			leb_unsigned(c);
	}
}

void dwline_rows(const struct dwline *t, struct lineset *set)
{
	struct cursor c = t->program;
	struct state st = fresh;

	while (cursor_left(&c) && !lineset_status(set)) {
		const uint8_t op = cursor_u8(&c);

		if (op >= t->opcode_base) {
			const unsigned adjusted = op - t->opcode_base;

			addr_advance(t, &st, adjusted / t->line_range);
			st.line += (uint32_t)(t->line_base + (int)(adjusted % t->line_range));
			row_add(t, &st, set);
		} else if (op == 0) {
			extended(&c, &st, set);
		} else {
			standard(t, &c, op, &st, set);
		}
	}
	lineset_abandon(set);
}
