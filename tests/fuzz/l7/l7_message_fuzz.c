/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7_message_fuzz: of a packet of any bytes, what is read is within its bounds and printable;
 * written again, it is read the same.
 *
 * covers: loaders/l7/parser_message.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/parser_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static size_t fixed_size(enum msg_kind kind)
{
	return kind == MSG_SUM     ? sizeof(struct msg_sum) :
	       kind == MSG_PART    ? sizeof(struct msg_part) :
	       kind == MSG_SINGLE  ? sizeof(struct msg_single) :
	       kind == MSG_BYTES   ? sizeof(struct msg_bytes) :
	       kind == MSG_NAMED   ? sizeof(struct msg_named) :
	       kind == MSG_RUNNING ? sizeof(struct msg_running) :
				     sizeof(struct msg_head);
}

struct again {
	uint64_t *packet; /* the first one, as it was read */
	size_t len, at;
};

static void alike(const struct message *a, const struct message *b)
{
	size_t body = fixed_size(a->kind) - sizeof(struct msg_head);

	for (int i = 0; i < MSG_TEXTS; i++)
		if (strcmp(a->text[i], b->text[i]))
			abort();
	if (a->n_steps != b->n_steps || a->first_step != b->first_step || a->kind != b->kind ||
	    memcmp(a->head + 1, b->head + 1, body))
		abort();
	if (a->steps && memcmp(a->steps, b->steps, a->n_steps * sizeof(*a->steps)))
		abort();
}

static void take(void *ctx, const void *packet, size_t size)
{
	static struct message first, second;
	struct again *x = ctx;
	size_t at = 0;

	while (at < size) {
		if (!message_read(packet, size, &at, &second) ||
		    !message_read(x->packet, x->len, &x->at, &first))
			abort();
		alike(&first, &second);
	}
}

static void write_again(struct message_writer *to, const struct message *m)
{
	struct message_tail tail = {
		.steps = m->steps, .first_step = m->first_step, .n_steps = m->n_steps};
	struct msg_single copy; /* the largest */

	for (int i = 0; i < MSG_TEXTS; i++) {
		tail.text[i] = *m->text[i] ? m->text[i] : NULL;
		if (strlen(m->text[i]) >= MSG_TEXT_MAX || strpbrk(m->text[i], "\x1b\n\r\t\x7f"))
			abort();
	}
	memcpy(&copy, m->head, fixed_size(m->kind));
	message_write(to, m->kind, &copy, &tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct message_writer to;
	static struct message m;
	struct again x = {.packet = calloc(len / 8 + 1, 8), .len = len};

	memcpy(x.packet, data, len);
	to = (struct message_writer){.send = take, .ctx = &x};
	for (size_t at = 0; message_read(x.packet, len, &at, &m);)
		write_again(&to, &m);
	message_flush(&to);
	free(x.packet);
	return 0;
}
