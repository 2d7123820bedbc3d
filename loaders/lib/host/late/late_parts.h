/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latemore: the parts of deep stacks that come before their struct stack_late (probes/lib/stack.h):
 * kept until that comes, of each CPU those of its last stack. Parts whose record found no room in
 * the ring are forgotten at the next of their CPU.
 */
#ifndef SONDE_HOST_LATE_PARTS_H
#define SONDE_HOST_LATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/lib/stack.h"

struct late_parts_part;

struct late_parts { /* all 0: none */
	struct late_parts_part *head, *last;
	size_t n;
};

void late_parts_release(struct late_parts *m);

bool late_parts_is(const void *record, size_t size);

/* Copies it. -EBADMSG: its counts are wrong; -ENOBUFS: there are too many. */
int late_parts_push(struct late_parts *m, const void *record, size_t size);

/* How many bytes there are that continue l->stack. */
size_t late_parts_bytes(const struct late_parts *m, const struct stack_late *l);
/* Writes them behind the l->size bytes of `to`, which stands for l->stack, and forgets all of its
 * CPU. */
void late_parts_take(struct late_parts *m, const struct stack_late *l, __u8 *to);

#endif
