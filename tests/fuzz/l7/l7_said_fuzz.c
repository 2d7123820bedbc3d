/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7_said_fuzz: a message of any bytes is read within its bounds and its contents can be printed;
 * encoded again, it reads the same.
 *
 * covers: loaders/l7/parser_message.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/parser_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct again {
	uint64_t *message; /* the first one, as it was heard */
	size_t len, at;
};

static void alike(const struct heard *a, const struct heard *b)
{
	for (int i = 0; i < SAID_TEXTS; i++)
		if (strcmp(a->text[i], b->text[i]))
			abort();
	if (a->s->n_steps != b->s->n_steps || a->s->first_step != b->s->first_step ||
	    a->s->what != b->s->what || memcmp(a->s->number, b->s->number, sizeof(a->s->number)))
		abort();
	if (a->steps && memcmp(a->steps, b->steps, a->s->n_steps * sizeof(*a->steps)))
		abort();
}

static void hear(void *ctx, const void *message, size_t size)
{
	static struct heard first, second;
	struct again *x = ctx;
	size_t at = 0;

	while (at < size) {
		if (!said_next(message, size, &at, &second) ||
		    !said_next(x->message, x->len, &x->at, &first))
			abort();
		alike(&first, &second);
	}
}

static void say(struct saying *to, const struct heard *h)
{
	const char *text[SAID_TEXTS];
	struct said s = *h->s;

	for (int i = 0; i < SAID_TEXTS; i++) {
		text[i] = *h->text[i] ? h->text[i] : NULL;
		if (strlen(h->text[i]) >= SAID_TEXT || strpbrk(h->text[i], "\x1b\n\r\t\x7f"))
			abort();
	}
	saying_add(to, &s, text, h->steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct saying to;
	static struct heard h;
	struct again x = {.message = calloc(len / 8 + 1, 8), .len = len};

	memcpy(x.message, data, len);
	to = (struct saying){.send = hear, .ctx = &x};
	for (size_t at = 0; said_next(x.message, len, &at, &h);)
		say(&to, &h);
	saying_flush(&to);
	free(x.message);
	return 0;
}
