/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/wire.h"

#include <string.h>

#include "loaders/logs/level.h"

static uint16_t size_of(const char *s)
{
	size_t n = s ? strlen(s) + 1 : 0;

	return (uint16_t)(n < WIRE_TEXT / 2 ? n : WIRE_TEXT / 2);
}

static void text_put(char *to, const char *s, uint16_t size)
{
	if (!size)
		return;
	memcpy(to, s, size - 1u);
	to[size - 1] = 0;
}

bool wire_add(struct wire_packet *p, struct wire_said *x, const char *first, const char *second)
{
	char *to = (char *)p->bytes + p->len;
	size_t texts;

	x->text[0] = size_of(first);
	x->text[1] = size_of(second);
	texts = (size_t)x->text[0] + x->text[1];
	x->size = (uint32_t)((sizeof(*x) + texts + 7) & ~(size_t)7);
	if (p->len + x->size > sizeof(p->bytes))
		return false;
	memset(to, 0, x->size);
	memcpy(to, x, sizeof(*x));
	text_put(to + sizeof(*x), first, x->text[0]);
	text_put(to + sizeof(*x) + x->text[0], second, x->text[1]);
	p->len += x->size;
	return true;
}

bool wire_next(const struct wire_packet *p, size_t *at, struct wire_said *x, const char *text[2])
{
	const char *from = (const char *)p->bytes + *at;
	size_t texts;

	if (p->len > sizeof(p->bytes) || *at > p->len || p->len - *at < sizeof(*x))
		return false;
	memcpy(x, from, sizeof(*x));
	texts = (size_t)x->text[0] + x->text[1];
	if (x->size < sizeof(*x) + texts || x->size > p->len - *at || x->size % 8 ||
	    texts > WIRE_TEXT || !x->kind || x->kind >= WIRE_KINDS || x->level >= LEVELS)
		return false;
	for (int i = 0; i < 2; i++) {
		const char *s = from + sizeof(*x) + (i ? x->text[0] : 0);

		if (x->text[i] && (s[x->text[i] - 1] || strlen(s) + 1 != x->text[i]))
			return false;
		text[i] = x->text[i] ? s : "";
	}
	*at += x->size;
	return true;
}
