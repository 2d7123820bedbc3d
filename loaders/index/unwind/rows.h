/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: collects the unwind rules of one file from several sources (call-frame information, Go's
 * tables, known code), and turns them into the bytes of the index's section UNWIND
 * (probes/lib/tables.h, points 1-3).
 *
 * A source opens a span [start, end) of addresses, then adds rows in ascending order: each rule is
 * valid up to the next row or the span's end. Addresses before a span's first row have no rule.
 *
 *   rows_span(r, f.start, f.end, ROWS_EH_FRAME);
 *   rows_add(r, f.start, ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAME, 0, 1));
 *   rows_add(r, f.start + 1, ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAVED, 2, 2));
 *   rows_add(r, f.start + 9, rows_ext(r, &x));
 *
 * 1. Spans may come in any order and may overlap. A better source (enum rows_source, lower is
 *    better) wins over a worse one. Within one source a span ends where a later one begins (as
 *    a search in .eh_frame_hdr would find it); of several that begin at one address the first given
 *    stays.
 * 2. A gap between spans of up to ROWS_PADDING bytes belongs to the span before it (padding); a
 *    larger one is ROW_NONE.
 * 3. A row with the same rule as the row before it is dropped.
 * 4. Spans outside [base, end) are left out. In a reserved range only spans of ROWS_SURE count.
 * 5. Equal rules and equal extensions are kept once. A rule beyond TABLES_RULES_MAX is
 *    ROW_UNSUPPORTED_RANGE.
 * 6. A span that begins with ROW_ROOT begins one byte earlier, where that byte is padding: its
 *    first byte is a return address (makecontext's __start_context).
 */
#ifndef SONDE_INDEX_ROWS_H
#define SONDE_INDEX_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "probes/lib/tables.h"
#include "schema/base/idmap.h"

#define ROWS_PADDING  15u
#define ROWS_SIZE_MAX (1ull << 30) /* bytes of text: what claims more gets no rows */
/* rows given; about eight times those of the largest library of Debian */
#define ROWS_MAX     12000000u
#define ROWS_EXT_MAX 65536u

enum rows_source {
	ROWS_SURE, /* Go's tables; bytes that leave no doubt */
	ROWS_EH_FRAME,
	ROWS_DEBUG_FRAME,
	ROWS_GUESS,    /* by name, or by a known form of code */
	ROWS_FOLLOWED, /* by following code that nothing describes */
	ROWS_SOURCES
};

/* Rules that every file has. */
enum rows_number { ROWS_NONE = 0, ROWS_ROOT = 1, ROWS_RANGE = 2, ROWS_FIXED = 3 };

struct rows_span {
	uint32_t lo, hi; /* from base */
	uint32_t first;  /* in rows */
	uint32_t count;
	uint32_t source;
};

struct rows {
	uint64_t base, end;
	uint64_t *rows; /* own: address from base << 32 | number of the rule */
	size_t count, cap;
	uint64_t *rules; /* own; enum rows_number first */
	size_t rule_count, rule_cap;
	struct idmap rule_numbers;
	uint64_t last_rule; /* as given last, which is often given again, and its number */
	uint32_t last_number;
	struct rows_span *spans; /* own */
	size_t span_count, span_cap;
	struct row_ext *exts; /* own */
	size_t ext_count, ext_cap;
	struct idmap ext_numbers;
	uint64_t reserved_lo, reserved_hi;
	uint64_t *starts; /* own: where code that was followed calls a function, or takes its
			     address */
	size_t start_count, start_cap;
	size_t signals; /* rows that say ROW_SIGNAL */
	uint32_t flags; /* enum unwind_flags, for who made rows to set */
	bool open;      /* rows are taken */
	int failed;     /* first -errno; then nothing is taken any more */
};

/* `base`: start of the lowest executable segment, rounded down to a page; `end`: end of the
 * highest. -EFBIG: further apart than ROWS_SIZE_MAX. */
int rows_init(struct rows *r, uint64_t base, uint64_t end);
void rows_release(struct rows *r);
/* From here on [lo, hi) is described by ROWS_SURE alone; what others gave there goes. One range. */
void rows_reserve(struct rows *r, uint64_t lo, uint64_t hi);
/* Opens a span; the one before is closed by it. Nothing fails here: rows_finish tells. */
void rows_span(struct rows *r, uint64_t start, uint64_t end, enum rows_source source);
/* A row of the open span. A second one at the same address replaces the first; what is not
 * ascending, or lies outside of the span, is left out. */
void rows_add(struct rows *r, uint64_t addr, uint64_t rule);
/* The rule for this extension (equal ones share a number). Unused fields must be 0. */
uint32_t rows_ext(struct rows *r, const struct row_ext *x);
/* A function begins there, by the code that calls it: an edge (rows_edges), no span. */
void rows_start(struct rows *r, uint64_t addr);
/* Where one function ends or another one begins, by all that was given: both ends of each span but
 * those of code that was followed, and each rows_start. In no order. Own (free it). -ENOMEM. */
int rows_edges(const struct rows *r, uint64_t **out, size_t *count);
/* The bytes (struct unwind_head first; free them). *size 0 and *out NULL: no rows. -ENOMEM; -EFBIG:
 * too many. */
int rows_finish(struct rows *r, void **out, size_t *size);

#endif
