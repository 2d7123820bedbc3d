/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_parts: the parts of deep stacks that precede their struct stack_late (probes/lib/stack.h).
 * They are kept until that arrives, for each CPU those of its last stack. If the ring had no room
 * for the struct, its parts are dropped when the CPU sends the next ones.
 */
#ifndef SONDE_HOST_LATE_PARTS_H
#define SONDE_HOST_LATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/lib/stack.h"

struct late_parts_part;

struct late_parts { /* all 0: none */
	struct late_parts_part *head, *last;
	size_t n;
};

void late_parts_release(struct late_parts *m);

bool late_parts_is(const void *record, size_t size);

/* Copies it. -EBADMSG: wrong counts; -ENOBUFS: too many. */
int late_parts_push(struct late_parts *m, const void *record, size_t size);

/* What came for `l` from elsewhere (enum stack_aside); NULL: nothing. Until late_parts_take. */
const struct stack_more *late_parts_aside(const struct late_parts *m, const struct stack_late *l,
					  uint32_t which);
/* How many bytes continue l->stack. */
size_t late_parts_bytes(const struct late_parts *m, const struct stack_late *l);
/* Writes them after the l->size bytes of `to`, a copy of l->stack, and drops all parts of its CPU.
 */
void late_parts_take(struct late_parts *m, const struct stack_late *l, __u8 *to);

#endif
