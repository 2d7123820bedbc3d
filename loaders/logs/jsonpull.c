/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/jsonpull.h"

#include <stdint.h>
#include <string.h>

#include "schema/base/array.h"

static void blanks(struct jsonpull *j)
{
	while (j->at < j->end &&
	       (*j->at == ' ' || *j->at == '\t' || *j->at == '\r' || *j->at == '\n'))
		j->at++;
}

static bool take(struct jsonpull *j, char c)
{
	blanks(j);
	if (j->at >= j->end || *j->at != c)
		return false;
	j->at++;
	return true;
}

/* Behind the opening quote. */
static bool text_take(struct jsonpull *j, struct jsonpull_text *out)
{
	out->s = j->at;
	for (;;) {
		const char *q = memchr(j->at, '"', (size_t)(j->end - j->at)), *back;

		if (!q)
			return false;
		j->at = q + 1;
		for (back = q; back > out->s && back[-1] == '\\'; back--)
			;
		if ((q - back) % 2)
			continue; /* the quote is escaped */
		out->len = (size_t)(q - out->s);
		return true;
	}
}

/* A number, a word, an object or a list. */
static bool other_take(struct jsonpull *j, struct jsonpull_text *out)
{
	struct jsonpull_text skipped;
	int depth = 0;

	out->s = j->at;
	for (; j->at < j->end; j->at++) {
		char c = *j->at;

		if (!depth && (c == ',' || c == '}'))
			break;
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		else if (c == '"') {
			j->at++;
			if (!text_take(j, &skipped))
				return false;
			j->at--;
		}
		if (depth < 0)
			return false;
	}
	out->len = (size_t)(j->at - out->s);
	while (out->len && out->s[out->len - 1] <= ' ')
		out->len--;
	return j->at < j->end && out->len;
}

bool jsonpull_begin(struct jsonpull *j, const char *s, size_t len)
{
	*j = (struct jsonpull){s, s + len};
	return take(j, '{');
}

bool jsonpull_next(struct jsonpull *j, struct jsonpull_member *out)
{
	take(j, ',');
	if (!take(j, '"') || !text_take(j, &out->key) || !take(j, ':'))
		return false;
	blanks(j);
	out->text = take(j, '"');
	return out->text ? text_take(j, &out->value) : other_take(j, &out->value);
}

bool jsonpull_is(struct jsonpull_text t, const char *word)
{
	return t.len == strlen(word) && !memcmp(t.s, word, t.len);
}

/* ---- escapes ---- */

static bool hex4(const char *s, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++) {
		char c = s[i];
		int d = c >= '0' && c <= '9' ? c - '0' :
			c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			c >= 'A' && c <= 'F' ? c - 'A' + 10 :
					       -1;

		if (d < 0)
			return false;
		*out = *out << 4 | (uint32_t)d;
	}
	return true;
}

static size_t put_utf8(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* Behind "\u": how many bytes of the input it takes, 0: it is no such escape. */
static size_t unicode(const char *s, size_t len, char out[4], size_t *n)
{
	uint32_t c, low;
	size_t used = 4;

	if (len < 4 || !hex4(s, &c))
		return 0;
	if (c >= 0xd800 && c < 0xdc00 && len >= 10 && s[4] == '\\' && s[5] == 'u' &&
	    hex4(s + 6, &low) && low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		used = 10;
	}
	*n = put_utf8(c >= 0xd800 && c < 0xe000 ? '?' : c, out);
	return used;
}

static char plain_of(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	default:
		return c;
	}
}

size_t jsonpull_plain(struct jsonpull_text t, char *out, size_t size)
{
	const char *at = t.s, *end = t.s + t.len;
	size_t n = 0, run, put, used;
	char utf8[4];

	while (at < end && n < size) {
		const char *back = memchr(at, '\\', (size_t)(end - at));

		run = (size_t)((back ? back : end) - at);
		run = run < size - n ? run : size - n;
		memcpy(out + n, at, run);
		n += run;
		at += run;
		if (at != back || n >= size)
			continue;
		if (at + 1 >= end)
			break;
		used = at[1] == 'u' ? unicode(at + 2, (size_t)(end - at - 2), utf8, &put) : 0;
		if (!used) {
			out[n++] = plain_of(at[1]);
			at += 2;
			continue;
		}
		put = put < size - n ? put : size - n;
		memcpy(out + n, utf8, put);
		n += put;
		at += 2 + used;
	}
	return n;
}
