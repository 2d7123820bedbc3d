/* SPDX-License-Identifier: Apache-2.0 */
/* strbuf: a growing string. */
#include "schema/base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

void strbuf_release(struct strbuf *s)
{
	free(s->buf);
	*s = (struct strbuf)STRBUF_INIT;
}

void strbuf_reset(struct strbuf *s)
{
	s->len = 0;
	if (s->buf)
		s->buf[0] = '\0';
}

static void strbuf_grow(struct strbuf *s, size_t more)
{
	size_t need = s->len + more + 1;
	size_t cap = s->cap ? s->cap : 64;

	if (need <= s->cap)
		return;
	while (cap < need)
		cap *= 2;
	s->buf = mem_realloc(s->buf, cap);
	s->cap = cap;
}

void strbuf_add(struct strbuf *s, const void *data, size_t len)
{
	strbuf_grow(s, len);
	if (len)
		memcpy(s->buf + s->len, data, len);
	s->len += len;
	s->buf[s->len] = '\0';
}

void strbuf_addch(struct strbuf *s, char c)
{
	strbuf_add(s, &c, 1);
}

void strbuf_addstr(struct strbuf *s, const char *str)
{
	strbuf_add(s, str, strlen(str));
}

void strbuf_vaddf(struct strbuf *s, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return;
	strbuf_grow(s, (size_t)n);
	vsnprintf(s->buf + s->len, (size_t)n + 1, fmt, ap);
	s->len += (size_t)n;
}

void strbuf_addu(struct strbuf *s, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	strbuf_add(s, digits + at, sizeof(digits) - at);
}

void strbuf_addf(struct strbuf *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(s, fmt, ap);
	va_end(ap);
}

const char *strbuf_str(const struct strbuf *s)
{
	return s->buf ? s->buf : "";
}

char *strbuf_take(struct strbuf *s)
{
	char *took;

	strbuf_grow(s, 0);
	s->buf[s->len] = '\0';
	took = s->buf;
	*s = (struct strbuf)STRBUF_INIT;
	return took;
}

/* Length of the valid UTF-8 sequence at p (Unicode 15, table 3-7), 0: not valid. */
static size_t utf8_len(const uint8_t *p, size_t n)
{
	uint8_t c = p[0];
	uint8_t lo = 0x80, hi = 0xbf;
	size_t len, i;

	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf) {
		len = 2;
	} else if (c >= 0xe0 && c <= 0xef) {
		len = 3;
		if (c == 0xe0)
			lo = 0xa0;
		if (c == 0xed)
			hi = 0x9f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		len = 4;
		if (c == 0xf0)
			lo = 0x90;
		if (c == 0xf4)
			hi = 0x8f;
	} else {
		return 0;
	}
	if (n < len || p[1] < lo || p[1] > hi)
		return 0;
	for (i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

/* The code point of a valid sequence of n bytes. */
static uint32_t utf8_code(const uint8_t *p, size_t n)
{
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* C1; the soft hyphen; ALM, LRM and RLM; spaces without a width; separators of lines and
 * paragraphs; embeddings, overrides and isolates; annotations; tags, which spell ASCII, and
 * selectors of variants, which spell bytes (Unicode 15, PropList.txt). Joiners and the two
 * selectors of emoji are parts of words. */
static bool is_unseen(uint32_t c)
{
	return (c >= 0x80 && c <= 0x9f) || c == 0xad || c == 0x61c || c == 0x180e || c == 0x200b ||
	       c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || (c >= 0xfe00 && c <= 0xfe0d) || c == 0xfeff ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* How much of it is printable ASCII: of names that is mostly all. */
static size_t plain_len(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] >= 0x20 && p[i] < 0x7f)
		i++;
	return i;
}

static void add_clean(struct strbuf *s, const void *data, size_t len, bool shown)
{
	const uint8_t *p = data;
	size_t i = plain_len(p, len), n;

	strbuf_grow(s, len);
	strbuf_add(s, p, i);
	for (; i < len; i += n ? n : 1) {
		n = utf8_len(p + i, len - i);
		if (p[i] < 0x20 || p[i] == 0x7f)
			strbuf_addf(s, "\\x%02x", p[i]);
		else if (!n)
			strbuf_addstr(s, "\xef\xbf\xbd");
		else if (shown && is_unseen(utf8_code(p + i, n)))
			strbuf_addf(s, n < 4 ? "\\u%04x" : "\\U%08x", utf8_code(p + i, n));
		else
			strbuf_add(s, p + i, n);
	}
	s->buf[s->len] = '\0';
}

void strbuf_addutf8(struct strbuf *s, const void *data, size_t len)
{
	add_clean(s, data, len, false);
}

void strbuf_addshown(struct strbuf *s, const void *data, size_t len)
{
	add_clean(s, data, len, true);
}

void strbuf_addlines(struct strbuf *s, const char *text)
{
	for (;;) {
		size_t n = strcspn(text, "\n");

		strbuf_addshown(s, text, n);
		if (!text[n])
			return;
		strbuf_addch(s, '\n');
		text += n + 1;
	}
}
