/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/late/late_parts.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define PARTS_MAX (STACK_MORE_PARTS * 1024) /* for this many CPUs */

struct late_parts_part {
	struct late_parts_part *next;
	struct stack_more more; /* as much as was filled */
};

/* Drops the parts of this CPU, except those of `ev`'s stack; NULL: all. */
static void forget(struct late_parts *m, uint32_t cpu, const struct stack_event *ev)
{
	struct late_parts_part **at = &m->head, *part;

	m->last = NULL;
	while ((part = *at)) {
		const struct stack_event *of = &part->more.ev;

		if (of->cpu == cpu && !(ev && of->time_ns == ev->time_ns && of->tid == ev->tid)) {
			*at = part->next;
			m->n--;
			free(part);
		} else {
			m->last = part;
			at = &part->next;
		}
	}
}

void late_parts_release(struct late_parts *m)
{
	struct late_parts_part *part;

	while ((part = m->head)) {
		m->head = part->next;
		free(part);
	}
	*m = (struct late_parts){0};
}

bool late_parts_is(const void *record, size_t size)
{
	const struct stack_more *more = record;

	return size >= offsetof(struct stack_more, stack) && more->ev.flags == STACK_F_MORE;
}

int late_parts_push(struct late_parts *m, const void *record, size_t size)
{
	const struct stack_more *more = record;
	struct late_parts_part *part;

	if (!late_parts_is(record, size) || more->size > STACK_MORE_BYTES ||
	    more->size > size - offsetof(struct stack_more, stack))
		return -EBADMSG;
	size = offsetof(struct stack_more, stack) + more->size;
	forget(m, more->ev.cpu, &more->ev);
	if (m->n >= PARTS_MAX)
		return -ENOBUFS;
	part = mem_alloc(offsetof(struct late_parts_part, more) + size);
	part->next = NULL;
	memcpy((void *)&part->more, record, size);
	if (m->last)
		m->last->next = part;
	else
		m->head = part;
	m->last = part;
	m->n++;
	return 0;
}

/* The part of `l` that says `from`. */
static const struct stack_more *part_of(const struct late_parts *m, const struct stack_late *l,
					size_t from)
{
	for (const struct late_parts_part *part = m->head; part; part = part->next) {
		const struct stack_more *more = &part->more;

		if (more->ev.cpu == l->ev.cpu && more->ev.tid == l->ev.tid &&
		    more->ev.time_ns == l->ev.time_ns && more->from == from && more->size)
			return more;
	}
	return NULL;
}

/* The part that starts `bytes` above RSP. */
static const struct stack_more *part_at(const struct late_parts *m, const struct stack_late *l,
					size_t bytes)
{
	const struct stack_more *more = part_of(m, l, bytes);

	return more && bytes + more->size <= STACK_LATE_ALL ? more : NULL;
}

const struct stack_more *late_parts_aside(const struct late_parts *m, const struct stack_late *l,
					  uint32_t which)
{
	const struct stack_more *more = part_of(m, l, STACK_MORE_ASIDE | which);

	return more && more->size > sizeof(uint64_t) ? more : NULL;
}

size_t late_parts_bytes(const struct late_parts *m, const struct stack_late *l)
{
	const struct stack_more *more;
	size_t bytes = l->size;

	while ((more = part_at(m, l, bytes)))
		bytes += more->size;
	return bytes - l->size;
}

void late_parts_take(struct late_parts *m, const struct stack_late *l, __u8 *to)
{
	const struct stack_more *more;
	size_t bytes = l->size;

	while ((more = part_at(m, l, bytes))) {
		memcpy(to + bytes, more->stack, more->size);
		bytes += more->size;
	}
	forget(m, l->ev.cpu, NULL);
}
