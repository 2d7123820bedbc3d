/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jfrblock.h"

#include <errno.h>
#include <stdbool.h>

#define TIME_MAX 4102444800000000000 /* the year 2100 */

static size_t part(size_t *at, size_t size)
{
	const size_t begin = *at;

	*at = (begin + size + 7) & ~(size_t)7;
	return begin;
}

void jfrblock_places(const struct jfrblock_head *h, struct jfrblock_places *out)
{
	size_t at = 0;

	part(&at, sizeof(*h));
	out->texts = part(&at, h->text_bytes);
	out->frames = part(&at, h->n_frames * sizeof(struct jfrblock_frame));
	out->words = part(&at, h->n_words * sizeof(uint32_t));
	out->stacks = part(&at, h->n_stacks * sizeof(struct jfrblock_stack));
	out->events = part(&at, h->n_events * sizeof(struct jfrblock_event));
	out->end = at;
}

static bool stacks_hold(const struct jfrblock *b)
{
	for (uint32_t i = 0; i < b->head->n_frames; i++)
		if (b->frames[i].function >= b->head->text_bytes)
			return false;
	for (uint32_t i = 0; i < b->head->n_words; i++)
		if (b->words[i] >= b->head->n_frames)
			return false;
	for (uint32_t i = 0; i < b->head->n_stacks; i++)
		if (b->stacks[i].n > JFRBLOCK_DEPTH || b->stacks[i].first > b->head->n_words ||
		    b->stacks[i].n > b->head->n_words - b->stacks[i].first)
			return false;
	return true;
}

static bool event_holds(const struct jfrblock *b, const struct jfrblock_event *e)
{
	const uint32_t texts = b->head->text_bytes;

	return e->what && e->what < JFRBLOCK_KINDS && e->stack < b->head->n_stacks &&
	       e->name < texts && e->other < texts && e->thread < texts && e->start_ns > 0 &&
	       e->start_ns < TIME_MAX && e->value < UINT64_MAX / 4 && e->longest < UINT64_MAX / 4;
}

int jfrblock_open(const void *bytes, size_t len, struct jfrblock *out)
{
	const struct jfrblock_head *h = bytes;
	const char *base = bytes;
	struct jfrblock b = {.head = h};
	struct jfrblock_places at;

	if (len < sizeof(*h) || len > JFRBLOCK_BYTES_MAX || h->magic != JFRBLOCK_MAGIC ||
	    h->n_events > JFRBLOCK_EVENTS_MAX || !h->text_bytes || h->chunk_ns < 0 ||
	    h->chunk_ns >= TIME_MAX)
		return -EBADMSG;
	jfrblock_places(h, &at);
	if (at.end != len || base[at.texts + h->text_bytes - 1])
		return -EBADMSG;
	b.texts = base + at.texts;
	b.frames = (const void *)(base + at.frames);
	b.words = (const void *)(base + at.words);
	b.stacks = (const void *)(base + at.stacks);
	b.events = (const void *)(base + at.events);
	if (!stacks_hold(&b))
		return -EBADMSG;
	for (uint32_t i = 0; i < h->n_events; i++)
		if (!event_holds(&b, &b.events[i]))
			return -EBADMSG;
	*out = b;
	return 0;
}
