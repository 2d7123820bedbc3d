/* SPDX-License-Identifier: Apache-2.0 */
/* strtab: strings, each once, in a row, NUL-terminated; the first is "". A zeroed struct is ready.
 */
#ifndef SONDE_INDEX_STRTAB_H
#define SONDE_INDEX_STRTAB_H

#include <stddef.h>
#include <stdint.h>

/* An index is no larger than this. */
#define INDEX_SIZE_MAX (255ull << 20)

struct strtab {
	char *buf; /* own */
	size_t len, cap;
	uint32_t *slots; /* own; open addressing: offset of a string, 0: empty */
	size_t slot_count, used;
};

void strtab_release(struct strtab *t);
/* The offset of `str` (`len` bytes, none of them NUL), which is added if it is new. -EFBIG: the
 * table would hold more than INDEX_SIZE_MAX bytes; -ENOMEM. */
int strtab_add(struct strtab *t, const char *str, size_t len, uint32_t *offset);
/* Borrowed until the next strtab_add. */
const char *strtab_get(const struct strtab *t, uint32_t offset);

#endif
