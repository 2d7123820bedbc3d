/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/parser_message.h"

#include <string.h>

#include "schema/store/model/stored.h"

static size_t up8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Of the struct that begins a message of each kind. */
static const uint16_t FIXED[MSG_KINDS] = {
	[MSG_SUM] = sizeof(struct msg_sum),       [MSG_PART] = sizeof(struct msg_part),
	[MSG_SINGLE] = sizeof(struct msg_single), [MSG_BYTES] = sizeof(struct msg_bytes),
	[MSG_NAMED] = sizeof(struct msg_named),   [MSG_RUNNING] = sizeof(struct msg_running),
	[MSG_FLUSHED] = sizeof(struct msg_head),
};

_Static_assert(sizeof(struct msg_head) == 32 && sizeof(struct msg_about) == 32, "no padding");
_Static_assert(sizeof(struct msg_sum) % 8 == 0 && sizeof(struct msg_part) % 8 == 0 &&
		       sizeof(struct msg_single) % 8 == 0 && sizeof(struct msg_bytes) % 8 == 0 &&
		       sizeof(struct msg_named) % 8 == 0 && sizeof(struct msg_running) % 8 == 0,
	       "messages follow each other");

/* ---- writing ---- */

void message_flush(struct message_writer *w)
{
	if (w->len)
		w->send(w->ctx, w->buf, w->len);
	w->len = 0;
}

void message_write(struct message_writer *w, enum msg_kind kind, void *message,
		   const struct message_tail *tail)
{
	struct msg_head *head = message;
	static const struct message_tail none;
	size_t at = FIXED[kind], texts = 0, steps;
	uint8_t *p;

	tail = tail ? tail : &none;
	*head = (struct msg_head){.kind = (uint16_t)kind, .first_step = tail->first_step};
	for (int i = 0; i < MSG_TEXTS; i++) {
		const char *text = tail->text[i];

		head->text[i] = text ? (uint16_t)(strnlen(text, MSG_TEXT_MAX - 1) + 1) : 0;
		texts += head->text[i];
	}
	head->n_steps = tail->steps ? tail->n_steps : 0;
	steps = head->n_steps * sizeof(*tail->steps);
	head->size = (uint32_t)(up8(at + texts) + up8(steps));
	if (w->len + head->size > sizeof(w->buf))
		message_flush(w);
	p = (uint8_t *)w->buf + w->len;
	memset(p, 0, head->size);
	memcpy(p, message, at);
	for (int i = 0; i < MSG_TEXTS; i++) {
		if (head->text[i])
			memcpy(p + at, tail->text[i], (size_t)head->text[i] - 1);
		at += head->text[i];
	}
	if (steps)
		memcpy(p + up8(at), tail->steps, steps);
	w->len += head->size;
}

/* ---- reading ---- */

/* Length of the UTF-8 character at p; 0: invalid, or a control character. */
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

/* Texts and steps lie within the message, and fill it. */
static bool sizes_valid(const struct msg_head *h, size_t left)
{
	size_t texts = 0, steps;

	if (left < sizeof(*h) || h->size > left || !h->kind || h->kind >= MSG_KINDS ||
	    h->size < FIXED[h->kind])
		return false;
	for (int i = 0; i < MSG_TEXTS; i++) {
		if (h->text[i] > MSG_TEXT_MAX)
			return false;
		texts += h->text[i];
	}
	if (h->n_steps > MSG_STEPS_MAX || h->first_step + h->n_steps > MSG_STEPS_MAX)
		return false;
	steps = h->n_steps * sizeof(uint32_t);
	return h->size == up8(FIXED[h->kind] + texts) + up8(steps);
}

static bool body_valid(const struct message *m)
{
	if (m->about &&
	    (m->about->side > STORE_SIDE_SERVER || m->about->result > STORE_RESULT_BLIND))
		return false;
	switch (m->kind) {
	case MSG_PART:
		return m->part->part && m->part->part <= REQUEST_PARTS;
	case MSG_SINGLE:
		return m->single->why && m->single->why <= SINGLE_RING &&
		       m->single->how < LINK_HOWS && m->single->partial <= 1;
	default:
		return true;
	}
}

bool message_read(const void *packet, size_t size, size_t *at, struct message *out)
{
	const struct msg_head *h;
	const uint8_t *text;

	if (*at >= size)
		return false;
	h = (const struct msg_head *)((const uint8_t *)packet + *at);
	if (!sizes_valid(h, size - *at))
		return false;
	out->kind = (enum msg_kind)h->kind;
	out->head = h;
	out->about = h->kind == MSG_FLUSHED ? NULL : &out->named->about;
	if (!body_valid(out))
		return false;
	text = (const uint8_t *)h + FIXED[h->kind];
	for (int i = 0; i < MSG_TEXTS; i++) {
		out->text[i][0] = '\0';
		if (h->text[i])
			text_take(out->text[i], text, (size_t)h->text[i] - 1);
		text += h->text[i];
	}
	text = (const uint8_t *)h + up8((size_t)(text - (const uint8_t *)h));
	out->steps = h->n_steps ? (const uint32_t *)text : NULL;
	out->first_step = h->first_step;
	out->n_steps = h->n_steps;
	*at += h->size;
	return true;
}
