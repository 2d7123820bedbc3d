/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latemore: the parts of deep stacks that come before their struct stack_late (probes/lib/stack.h): kept until that comes, of each CPU those of its
 * last stack. Parts whose record found no room in the ring are forgotten at the next of their CPU.
 */
#ifndef SONDE_HOST_LATEMORE_H
#define SONDE_HOST_LATEMORE_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/lib/stack.h"

struct latemore_part;

struct latemore { /* all 0: none */
	struct latemore_part *head, *last;
	size_t n;
};

void latemore_release(struct latemore *m);

bool latemore_is(const void *record, size_t size);

/* Copies it. -EBADMSG: its counts are wrong; -ENOBUFS: there are too many. */
int latemore_push(struct latemore *m, const void *record, size_t size);

/* How many bytes there are that continue l->stack. */
size_t latemore_bytes(const struct latemore *m, const struct stack_late *l);
/* Writes them behind the l->size bytes of `to`, which stands for l->stack, and forgets all of its CPU. */
void latemore_take(struct latemore *m, const struct stack_late *l, __u8 *to);

#endif
