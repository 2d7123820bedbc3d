/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor: reading numbers from untrusted bytes. Every read checks the range; the first that does
 * not fit sets `bad`; from then on reads return 0 and do not move. Little endian (x86-64, aarch64).
 */
#ifndef SONDE_BASE_CURSOR_H
#define SONDE_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *data; /* borrowed */
	size_t len;
	size_t pos;
	bool bad;
};

static inline struct cursor cursor_init(const void *data, size_t len)
{
	return (struct cursor){.data = data, .len = len};
}

static inline size_t cursor_left(const struct cursor *c)
{
	return c->bad ? 0 : c->len - c->pos;
}

/* Borrow `n` bytes and step over them; NULL (and bad) if fewer are left. */
static inline const void *cursor_bytes(struct cursor *c, size_t n)
{
	const uint8_t *p = c->data + c->pos;

	if (c->bad || n > c->len - c->pos) {
		c->bad = true;
		return NULL;
	}
	c->pos += n;
	return p;
}

#define CURSOR_READ_(name, type)                            \
	static inline type name(struct cursor *c)           \
	{                                                   \
		type v = 0;                                 \
		const void *p = cursor_bytes(c, sizeof(v)); \
		if (p)                                      \
			memcpy(&v, p, sizeof(v));           \
		return v;                                   \
	}
CURSOR_READ_(cursor_u8, uint8_t)
CURSOR_READ_(cursor_u16, uint16_t)
CURSOR_READ_(cursor_u32, uint32_t)
CURSOR_READ_(cursor_u64, uint64_t)
#undef CURSOR_READ_

/* Move to an absolute position; beyond the end is bad. */
static inline void cursor_seek(struct cursor *c, size_t pos)
{
	if (pos > c->len)
		c->bad = true;
	else if (!c->bad)
		c->pos = pos;
}

/* A NUL-terminated string: borrowed, its length in *len; NULL (and bad) if no NUL comes. */
static inline const char *cursor_str(struct cursor *c, size_t *len)
{
	const uint8_t *p = c->data + c->pos;
	const void *nul = c->bad ? NULL : memchr(p, 0, c->len - c->pos);

	if (!nul) {
		c->bad = true;
		return NULL;
	}
	*len = (size_t)((const uint8_t *)nul - p);
	c->pos += *len + 1;
	return (const char *)p;
}

#endif
