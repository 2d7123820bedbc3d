// SPDX-License-Identifier: Apache-2.0
#include "loaders/l7/parser_message.h"

#include <string.h>

static size_t up8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

void saying_flush(struct saying *to)
{
	if (to->len)
		to->send(to->ctx, to->buf, to->len);
	to->len = 0;
}

void saying_add(struct saying *to, struct said *s, const char *const text[SAID_TEXTS],
		const uint32_t *steps)
{
	size_t at = sizeof(*s), texts = 0;
	uint8_t *p;

	for (int i = 0; i < SAID_TEXTS; i++) {
		s->text[i] = text[i] ? (uint16_t)(strnlen(text[i], SAID_TEXT - 1) + 1) : 0;
		texts += s->text[i];
	}
	if (!steps)
		s->n_steps = 0;
	s->size = (uint32_t)(up8(at + texts) + up8(s->n_steps * sizeof(*steps)));
	if (to->len + s->size > sizeof(to->buf))
		saying_flush(to);
	p = (uint8_t *)to->buf + to->len;
	memset(p, 0, s->size);
	memcpy(p, s, sizeof(*s));
	for (int i = 0; i < SAID_TEXTS; i++) {
		if (s->text[i])
			memcpy(p + at, text[i], (size_t)s->text[i] - 1);
		at += s->text[i];
	}
	if (s->n_steps)
		memcpy(p + up8(at), steps, s->n_steps * sizeof(*steps));
	to->len += s->size;
}

/* Bytes of a character of UTF-8 that begins at p, 0: none does, or it is a control. */
static size_t character(const uint8_t *p, size_t n)
{
	size_t k = *p < 0x80               ? 1 :
		   *p >= 0xc2 && *p < 0xe0 ? 2 :
		   *p >= 0xe0 && *p < 0xf0 ? 3 :
		   *p >= 0xf0 && *p < 0xf5 ? 4 :
					     0;

	if (!k || k > n || *p < 0x20 || *p == 0x7f)
		return 0;
	for (size_t i = 1; i < k; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return k;
}

static void text_take(char *to, const uint8_t *from, size_t n)
{
	size_t at = 0, k;

	for (; at < n && from[at]; at += k) {
		k = character(from + at, n - at);
		memcpy(to + at, k ? (const char *)from + at : "?", k ? k : 1);
		k = k ? k : 1;
	}
	to[at] = '\0';
}

static bool sound(const struct said *s, size_t left)
{
	size_t texts = 0;

	if (left < sizeof(*s) || s->size > left || s->size < sizeof(*s) || s->size % 8)
		return false;
	for (int i = 0; i < SAID_TEXTS; i++) {
		if (s->text[i] > SAID_TEXT)
			return false;
		texts += s->text[i];
	}
	if (s->n_steps > SAID_STEPS || s->first_step + s->n_steps > SAID_STEPS)
		return false;
	return s->size == up8(sizeof(*s) + texts) + up8(s->n_steps * sizeof(uint32_t)) &&
	       s->side <= 2 && s->result <= 5 && s->why <= SAID_LINKED &&
	       s->flags <= (SAID_HOW | SAID_PARTIAL) && s->what >= SAID_SUM &&
	       s->what <= SAID_PART && (s->what != SAID_PART || (s->why && s->why <= SAID_PARTS));
}

bool said_next(const void *message, size_t size, size_t *at, struct heard *out)
{
	const uint8_t *p = (const uint8_t *)message + *at, *text = p + sizeof(struct said);
	const struct said *s = (const struct said *)p;

	if (*at >= size || !sound(s, size - *at))
		return false;
	out->s = s;
	for (int i = 0; i < SAID_TEXTS; i++) {
		out->text[i][0] = '\0';
		if (s->text[i])
			text_take(out->text[i], text, (size_t)s->text[i] - 1);
		text += s->text[i];
	}
	out->steps = s->n_steps ? (const uint32_t *)(p + up8((size_t)(text - p))) : NULL;
	*at += s->size;
	return true;
}
