/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late: stacks that were taken before their rows were there (struct stack_late: registers and a
 * copy of the stack). They wait until sonde-maps has told all of their time and has the rows of the
 * files they meet, and are unwound then by the rules of probes/lib/unwind.h: to addresses, which
 * are named by what was mapped at their time, as all others.
 *
 * Nothing is lost here: what has waited too long, or longest when there is no more room, is unwound
 * as far as rows are there.
 */
#ifndef SONDE_HOST_LATE_H
#define SONDE_HOST_LATE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/late/late_parts.h"
#include "probes/lib/stack.h"

struct hostmaps;
struct late_item;

/* Who knows code that processes make (unwind.h); NULL: nobody does. */
struct unwind_code;
struct late_code {
	void *ctx;
	int (*step)(void *ctx, struct hostmaps *hm, const struct stack_late *l,
		    struct unwind_code *c); /* enum unwind_code_step */
};

struct late {
	struct late_code code;
	struct late_item *head, **tail; /* in the order they came */
	struct late_parts more;
	size_t n, bytes, max_bytes, most_bytes; /* most: since it was empty last */
	struct late_event {
		struct stack_event ev;
		uint64_t frames[STACK_KERNEL_MAX + STACK_USER_MAX];
	} * out;
};

void late_init(struct late *q, size_t max_bytes); /* allocates nothing yet */
void late_release(struct late *q);

/* Copies what is used of the record, or of the part of one (latemore.h). -EBADMSG: it is none;
 * -ENOBUFS: the limit is reached, see late_shed. */
int late_push(struct late *q, const void *record, size_t size);

/* What takes a finished event: ev.n_kernel + ev.n_user frames follow it; borrowed for the call. */
typedef void (*late_fn)(void *ctx, const struct stack_event *ev, size_t size);

/* Hands over what is ready: sonde-maps has told of its time and nothing it needs is pending; or is
 * older than `patience_ns`; or all. */
void late_drain(struct late *q, struct hostmaps *hm, uint64_t now_ns, uint64_t patience_ns,
		bool all, late_fn fn, void *ctx);
/* Hands over what came first, until at least a sixteenth of the room is free. */
void late_shed(struct late *q, struct hostmaps *hm, late_fn fn, void *ctx);
/* Time of the oldest one that waits, UINT64_MAX: none does. */
uint64_t late_oldest(const struct late *q);

#endif
