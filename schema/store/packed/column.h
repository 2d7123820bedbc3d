/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column: one column of a table as bytes, as packed_column stores it
 * (schema/sql/0025-archives.sql).
 *
 *   1. Byte 0 is the form of its values, then comes the length of what follows when it is
 *      inflated, then that, as a Zstandard frame (RFC 8878) with a checksum.
 *   2. Form 1: numbers, each as the distance to the one before (the first: to 0). Form 2: numbers
 *      as they are. Both in zigzag: 2 * v where v >= 0, else -2 * v - 1.
 *   3. Form 3: texts that are lists of numbers below 2^32 with commas, '12,7,9': how many, then
 *      each as the distance to the one before, which may be of an earlier text (the first: to 0),
 *      in zigzag. None: ''.
 *   4. Form 4: texts of any kind, a NUL behind each.
 *   5. Form 5: numbers, each as the distance down from one more than the greatest one so far (of
 *      the first: from 1), in zigzag: what is new is 0.
 *   6. Forms 17, 18, 21: as 1, 2 and 5, but all first bytes of the numbers come first, then the
 *      second bytes of those that have more than one, and so on: bytes of one weight are alike.
 *   7. Lengths and numbers are LEB128 (7 bits a byte, the lowest first, at most 10 bytes); sums
 *      wrap around at 2^64.
 *   8. It inflates to at most COLUMN_MAX bytes, all of which belong to its values.
 *
 * Forms 6 to 9 are no column by themselves (packed/columns.h). Pure functions over bytes; nothing
 * aborts.
 */
#ifndef SONDE_STORE_PACKED_COLUMN_H
#define SONDE_STORE_PACKED_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLUMN_MAX (1u << 28) /* inflated; of texts, written out, four times as much */

struct column {
	size_t n;
	int64_t *numbers; /* NULL: it is texts */
	char *text;       /* text i is from text + at[i] on, a NUL behind it */
	uint32_t *at;     /* n + 1 of them */
	uint8_t *null;    /* for each value: 1: it is NULL, stored as 0 or ''. NULL: no value is
			     (packed/columns.h, form 10) */
};

enum column_form {
	COLUMN_STEPS = 1,
	COLUMN_NUMBERS,
	COLUMN_LISTS,
	COLUMN_TEXTS,
	COLUMN_FRESH,
	COLUMN_FORMS
};
#define COLUMN_WEIGHTS 16 /* added to a form of numbers: rule 6 */

/* The smallest form of these values; of many numbers the one that is the smallest of some of them.
 * *out is the caller's (free). -EINVAL: a text holds a NUL, or it is too large; -ENOMEM. */
int column_encode(const struct column *c, uint8_t **out, size_t *len);
/* Exactly n values; *out to be released. -EBADMSG: they are not; -ENOTSUP: a form that is not known
 * here; -ENOMEM. */
int column_decode(const void *data, size_t len, size_t n, struct column *out);
void column_release(struct column *c);

/* The same numbers one after the other: of millions, eight bytes each are most of what a reader
 * takes. */
#define COLUMN_NUMBER_MAX 10 /* bytes */
struct column_cursor {
	uint8_t *bytes; /* inflated */
	size_t len, n;  /* n: numbers that are left */
	enum column_form form;
	bool by_weight;
	uint64_t before;
	size_t at[COLUMN_NUMBER_MAX + 1]; /* rule 6: the next byte of each weight; else of all */
	size_t lists; /* of lists: how many are left behind the one at hand, whose numbers are n */
};

/* Exactly n numbers, or n lists; to be closed if 0. As column_decode; -EBADMSG: also of other
 * texts. */
int column_cursor_open(const void *data, size_t len, size_t n, struct column_cursor *out);
/* How many numbers the next list has. false: no list is left, numbers of the one before are, or the
 * column is damaged. */
bool column_cursor_list(struct column_cursor *c, size_t *n);
/* false: none is left, of this list, or the column is damaged. */
bool column_cursor_next(struct column_cursor *c, int64_t *out);
/* Was everything read that is there, and no more? -EBADMSG. */
int column_cursor_close(struct column_cursor *c);

/* The next number of "12,7,9", and the text after its comma; false: form 3 would not write it like
 * this. */
bool column_list_next(const char **p, uint32_t *out);
/* Writes the digits; returns what is behind them. At most COLUMN_DIGITS_MAX. */
#define COLUMN_DIGITS_MAX 10
char *column_put_number(char *p, uint32_t v);

#endif
