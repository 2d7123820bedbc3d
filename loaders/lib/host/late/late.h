/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late: stacks taken before their rows were published (struct stack_late: registers and a copy of
 * the stack). They wait until sonde-maps has reached their time and has the rows of their files,
 * and are then unwound by the rules of probes/lib/unwind.h into addresses, which are named by the
 * mappings of their time like all others.
 *
 * Nothing is lost here: a stack that has waited too long, or longest when there is no more room, is
 * unwound with the rows there are.
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

/* Memory from elsewhere that came with a stack (STACK_MORE_ASIDE), as it was then. */
struct late_aside {
	uint64_t at;
	size_t size; /* 0: none */
	const uint8_t *bytes;
};

/* Walks code that processes generate (unwind.h); NULL: none. */
struct unwind_code;
struct late_code {
	void *ctx;
	int (*step)(void *ctx, struct hostmaps *hm, const struct stack_late *l,
		    const struct late_aside aside[STACK_ASIDE_N],
		    struct unwind_code *c); /* enum unwind_code_step */
};

struct late {
	struct late_code code;
	struct late_item *head, **tail; /* oldest first */
	struct late_parts more;
	size_t n, bytes, max_bytes, most_bytes; /* most_bytes: the peak since it was last empty */
	struct late_event {
		struct stack_event ev;
		uint64_t frames[STACK_KERNEL_MAX + STACK_USER_MAX];
	} * out;
};

void late_init(struct late *q, size_t max_bytes); /* allocates nothing yet */
void late_release(struct late *q);

/* Copies the used part of the record, or one part of a deep stack (late_parts.h). -EBADMSG: it is
 * neither; -ENOBUFS: the limit is reached, see late_shed. */
int late_push(struct late *q, const void *record, size_t size);

/* Receives a finished event, followed by ev.n_kernel + ev.n_user frames; borrowed for the call. */
typedef void (*late_fn)(void *ctx, const struct stack_event *ev, size_t size);

/* Passes on the stacks that are ready: sonde-maps has reached their time and nothing they need is
 * pending; or they are older than `patience_ns`; or all. */
void late_drain(struct late *q, struct hostmaps *hm, uint64_t now_ns, uint64_t patience_ns,
		bool all, late_fn fn, void *ctx);
/* Passes on the oldest stacks, until at least a sixteenth of the room is free. */
void late_shed(struct late *q, struct hostmaps *hm, late_fn fn, void *ctx);
/* Time of the oldest stack that waits, UINT64_MAX: none. */
uint64_t late_oldest(const struct late *q);

#endif
