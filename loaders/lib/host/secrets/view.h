/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view: a piece of text that knows where each of its bytes lies in the input. A lexer takes quotes
 * and escapes away, and what finds a secret in the plain text can still hide the bytes of the input
 * that it came from; however often text is quoted, nothing has to be quoted again.
 */
#ifndef SONDE_HOST_SECRETS_VIEW_H
#define SONDE_HOST_SECRETS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One byte of plain text: the `n` bytes of the input at `at`. */
struct source {
	uint32_t at, n;
};

/* Borrows all. Without `src` the text is the input from `base` on. */
struct view {
	const char *p;
	size_t n, base;
	const struct source *src;
};

/* For each byte of the input one byte: not 0 if it is hidden. */
struct hidden {
	uint8_t *at;
};

static inline struct source view_source(struct view v, size_t i)
{
	return v.src ? v.src[i] : (struct source){(uint32_t)(v.base + i), 1};
}

static inline struct view view_part(struct view v, size_t from, size_t to)
{
	return (struct view){v.p + from, to - from, v.base + from, v.src ? v.src + from : NULL};
}

/* Hide the bytes `from` to `to` (not included). */
static inline void view_hide(struct hidden *h, struct view v, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < v.n; i++) {
		struct source s = view_source(v, i);

		for (uint32_t k = 0; k < s.n; k++)
			h->at[s.at + k] = 1;
	}
}

#endif
