/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold: records that wait until the mappings of their time are known. First in, first out, in one
 * ring of bytes that grows up to a limit and shrinks again when it is empty. A record that does not
 * fit is refused: the caller counts it.
 */
#ifndef SONDE_BPF_HOLD_H
#define SONDE_BPF_HOLD_H

#include <stddef.h>
#include <stdint.h>

struct hold {
	uint8_t *buf;
	size_t cap;  /* bytes, a power of two, or 0 */
	size_t head; /* offset of the oldest record, < cap */
	size_t used; /* bytes in use, headers and skipped ends included */
	size_t n;    /* records */
	size_t max;  /* bytes it may grow to */
};

void hold_init(struct hold *h, size_t max_bytes); /* allocates nothing yet */
void hold_release(struct hold *h);

/* Copies the record in. -ENOBUFS: the limit is reached. -EMSGSIZE: larger than any record may be
 * (64 KiB). */
int hold_push(struct hold *h, const void *record, size_t size);
/* The oldest record, 8-aligned, borrowed until the next call; NULL: empty. */
const void *hold_peek(const struct hold *h, size_t *size);
void hold_pop(struct hold *h);

#endif
