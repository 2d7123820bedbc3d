/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/cfi.h"

#include <string.h>

#include "loaders/index/unwind/cfiprog.h"
#include "loaders/index/unwind/leb.h"
#include "schema/base/cursor.h"

#define REG_RA 16u
/* by place; libraries have a handful, links of many objects without merging one each */
#define CIE_CACHE 128u

enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_FUNCREL = 0x40,
	PE_ALIGNED = 0x50,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff
};

/* ---- pointers ---- */

static bool value_read(struct cursor *c, uint8_t form, uint64_t *v)
{
	switch (form) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		*v = cursor_u64(c);
		break;
	case PE_ULEB128:
		*v = leb_unsigned(c);
		break;
	case PE_UDATA2:
		*v = cursor_u16(c);
		break;
	case PE_UDATA4:
		*v = cursor_u32(c);
		break;
	case PE_SLEB128:
		*v = (uint64_t)leb_signed(c);
		break;
	case PE_SDATA2:
		*v = (uint64_t)(int16_t)cursor_u16(c);
		break;
	case PE_SDATA4:
		*v = (uint64_t)(int32_t)cursor_u32(c);
		break;
	default:
		return false;
	}
	return !c->bad;
}

bool cfi_pointer(struct cursor *c, uint8_t encoding, uint64_t at, uint64_t text, uint64_t got,
		 uint64_t *out)
{
	uint64_t base, v;

	/* in memory that only the running program has; 0xff too: omitted */
	if (encoding & PE_INDIRECT)
		return false;
	switch (encoding & 0x70) {
	case 0:
		base = 0;
		break;
	case PE_PCREL:
		base = at;
		break;
	case PE_TEXTREL:
		base = text;
		break;
	case PE_DATAREL:
		base = got;
		break;
	case PE_ALIGNED:
		cursor_bytes(c, (size_t)(-at & 7));
		base = 0;
		encoding = PE_ABSPTR;
		break;
	default:
		return false; /* funcrel: relative to the function that is about to be reported */
	}
	if (!base && (encoding & 0x70))
		return false;
	if (!value_read(c, encoding & 0x0f, &v))
		return false;
	*out = base + v;
	return true;
}

/* ---- a section ---- */

/* One entry, without its length. */
struct entry {
	uint64_t at; /* of its length */
	size_t id_at;
	size_t end;
	bool wide;
	uint64_t id;
};

struct reader {
	const struct cfi_section *s;
	enum rows_source source;
	struct rows *rows;
	struct cfi_tally *tally;
	uint64_t steps;
	struct cfi_cie cies[CIE_CACHE];
};

/* The entry at `pos`. false: none fits there. id_at 0: a length of 0. */
static bool entry_read(const struct cfi_section *s, size_t pos, struct entry *out)
{
	struct cursor c = cursor_init(s->data, s->len);
	struct entry e = {.at = pos};
	uint64_t len;

	cursor_seek(&c, pos);
	len = cursor_u32(&c);
	if (len == 0xffffffff) {
		e.wide = true;
		len = cursor_u64(&c);
	}
	if (c.bad || len > s->len - c.pos)
		return false;
	e.end = c.pos + (size_t)len;
	if (len) {
		e.id_at = c.pos;
		e.id = e.wide && s->debug_frame ? cursor_u64(&c) : cursor_u32(&c);
		if (c.bad || c.pos > e.end)
			return false;
	}
	*out = e;
	return true;
}

static bool is_cie(const struct cfi_section *s, const struct entry *e)
{
	if (!s->debug_frame)
		return e->id == 0;
	return e->id == (e->wide ? UINT64_MAX : UINT32_MAX);
}

/* Behind the id. */
static struct cursor entry_body(const struct cfi_section *s, const struct entry *e)
{
	struct cursor c = cursor_init(s->data, e->end);

	cursor_seek(&c, e->id_at + (e->wide && s->debug_frame ? 8 : 4));
	return c;
}

/* ---- CIE ---- */

/* The letters after z, each with its data. */
static void augmentation_read(const struct cfi_section *s, struct cursor *c, const char *letters,
			      struct cfi_cie *cie)
{
	uint64_t pointer;

	for (; *letters && cie->usable; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'L':
			cursor_u8(c);
			break;
		case 'R':
			cie->encoding = cursor_u8(c);
			break;
		case 'P':
			encoding = cursor_u8(c);
			if (encoding != PE_OMIT &&
			    !cfi_pointer(c, encoding & 0x7f, s->vaddr + c->pos, 1, 1, &pointer))
				cie->usable = false;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			return; /* its length is known; what follows is not */
		}
	}
}

static void initial_run(struct reader *rd, const struct cursor *c, const struct entry *e,
			struct cfi_cie *cie)
{
	const struct cfi_program p = {.section = rd->s,
				      .cie = cie,
				      .data = rd->s->data + c->pos,
				      .len = e->end - c->pos,
				      .steps = &rd->steps};
	struct cfi_state first = {.cfa_reg = UINT64_MAX};

	if (!cfiprog_run(&p, &first))
		cie->usable = false;
	cie->initial = first;
}

static void cie_read(struct reader *rd, const struct entry *e, struct cfi_cie *cie)
{
	const struct cfi_section *s = rd->s;
	struct cursor c = entry_body(s, e);
	uint8_t version = cursor_u8(&c), address_size = 8;
	const char *letters;
	uint64_t ra, size;
	size_t len = 0;

	*cie = (struct cfi_cie){.at = e->at};
	letters = cursor_str(&c, &len);
	if (!letters || (version != 1 && version != 3 && version != 4))
		return;
	cie->usable = true;
	if (!strcmp(letters, "eh"))
		cursor_bytes(&c, 8);
	else if (*letters && *letters != 'z')
		cie->usable = false;
	if (version == 4) {
		address_size = cursor_u8(&c);
		cie->segment_size = cursor_u8(&c);
	}
	cie->code_align = leb_unsigned(&c);
	cie->data_align = leb_signed(&c);
	ra = version == 1 ? cursor_u8(&c) : leb_unsigned(&c);
	if (*letters == 'z') {
		cie->sized = true;
		size = leb_unsigned(&c);
		if (size <= cursor_left(&c)) {
			struct cursor data = c;

			data.len = c.pos + (size_t)size;
			augmentation_read(s, &data, letters + 1, cie);
			cie->usable &= !data.bad;
			cursor_bytes(&c, (size_t)size);
		} else {
			cie->usable = false;
		}
	}
	if (c.bad || address_size != 8 || ra != REG_RA)
		cie->usable = false;
	if (cie->usable)
		initial_run(rd, &c, e, cie);
}

/* The CIE at this place of the section. NULL: none. */
static const struct cfi_cie *cie_at(struct reader *rd, uint64_t at)
{
	struct cfi_cie *cie = &rd->cies[at / 4 % CIE_CACHE];
	struct entry e;

	if (cie->at == at && cie->code_align)
		return cie->usable ? cie : NULL;
	if (at >= rd->s->len || !entry_read(rd->s, (size_t)at, &e) || !e.id_at ||
	    !is_cie(rd->s, &e))
		return NULL;
	cie_read(rd, &e, cie);
	return cie->usable ? cie : NULL;
}

/* ---- FDE ---- */

struct fde {
	const struct cfi_cie *cie;
	uint64_t start, end;
	const uint8_t *program;
	size_t program_len;
};

static const struct cfi_cie *cie_of(struct reader *rd, const struct entry *e)
{
	if (rd->s->debug_frame)
		return cie_at(rd, e->id);
	return e->id <= e->id_at ? cie_at(rd, e->id_at - e->id) : NULL;
}

static bool fde_read(struct reader *rd, const struct entry *e, struct fde *out)
{
	const struct cfi_section *s = rd->s;
	struct fde f = {.cie = cie_of(rd, e)};
	struct cursor c = entry_body(s, e);
	uint64_t size;

	if (!f.cie)
		return false;
	cursor_bytes(&c, f.cie->segment_size);
	if (!cfi_pointer(&c, f.cie->encoding, s->vaddr + c.pos, s->text, s->got, &f.start) ||
	    !value_read(&c, f.cie->encoding & 0x0f, &size))
		return false;
	f.end = f.start + size;
	if (f.cie->sized) {
		size = leb_unsigned(&c);
		if (size > cursor_left(&c))
			return false;
		cursor_bytes(&c, (size_t)size);
	}
	if (c.bad)
		return false;
	f.program = s->data + c.pos;
	f.program_len = e->end - c.pos;
	*out = f;
	return true;
}

/* Ranges are sorted by their start; of two that overlap (no linker makes them) the later one
 * counts. */
static bool in_code(const struct cfi_section *s, const struct fde *f)
{
	size_t lo = 0, hi = s->code_count;

	if (!f->start || f->end <= f->start)
		return false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->code[mid].start <= f->start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && f->end <= s->code[lo - 1].end;
}

static void fde_signal(struct reader *rd, const struct fde *f, struct cfi_program *p)
{
	struct cfi_state state = f->cie->initial;
	bool sound = cfiprog_run(p, &state);

	if (sound && cfi_is_signal_context(&state)) {
		rows_span(rd->rows, f->start - 1, f->end, rd->source);
		rows_add(rd->rows, f->start - 1, ROW_MAKE_SPECIAL(ROW_SIGNAL, 0));
	} else {
		rows_span(rd->rows, f->start, f->end, rd->source);
		rows_add(rd->rows, f->start, ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RA));
	}
}

static void fde_rows(struct reader *rd, const struct fde *f)
{
	struct cfi_program p = {.section = rd->s,
				.cie = f->cie,
				.data = f->program,
				.len = f->program_len,
				.loc = f->start,
				.steps = &rd->steps};
	struct cfi_state state = f->cie->initial;

	rd->tally->fdes++;
	if (f->cie->signal) {
		fde_signal(rd, f, &p);
		return;
	}
	rows_span(rd->rows, f->start, f->end, rd->source);
	p.rows = rd->rows;
	if (!cfiprog_run(&p, &state))
		rd->tally->broken++;
}

void cfi_read(const struct cfi_section *s, enum rows_source source, struct rows *r,
	      struct cfi_tally *t)
{
	struct reader rd = {.s = s,
			    .source = source,
			    .rows = r,
			    .tally = t,
			    .steps = (uint64_t)s->len * CFI_STEPS_PER_BYTE};
	struct entry e;
	struct fde f;

	for (size_t pos = 0; pos < s->len && rd.steps && entry_read(s, pos, &e); pos = e.end) {
		if (!e.id_at) {
			if (s->open_end)
				return;
			continue;
		}
		if (is_cie(s, &e))
			continue;
		if (!fde_read(&rd, &e, &f)) {
			if (s->open_end && !cie_of(&rd, &e))
				return;
			t->dropped++;
		} else if (!in_code(s, &f)) {
			t->dropped++;
		} else {
			fde_rows(&rd, &f);
		}
	}
}
