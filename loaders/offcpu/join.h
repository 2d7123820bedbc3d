/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: stacks of waits, and how long those waits were. A stack comes when its wait begins, its length when it ends,
 * each through the ring, told apart by (thread id, when it left the CPU). Most often the stack comes first; one that is
 * unwound later comes after. What has both is an amount of kind offcpu, one of kind runqueue, or both. A length that
 * never gets its stack is an amount without one. A stack whose wait does not end is none.
 *
 * Stacks are named when they come: their process may be gone, and its mappings forgotten, when the wait ends. Where the
 * store's ids have changed by then, they are named once more.
 */
#ifndef SONDE_OFFCPU_JOIN_H
#define SONDE_OFFCPU_JOIN_H

#include <linux/types.h>
#include <stddef.h>

#include "probes/offcpu.h"
#include "schema/base/idmap.h"

struct family_host;
struct kallsyms;
struct naming_result;

struct join {
	struct idmap waiting;     /* of thread and time -> struct join_wait * */
	struct idmap last;        /* thread id -> key of its last stack that waits: an older one is over */
	struct kallsyms *symbols; /* the kernel's; NULL: not read, or hidden */
};

void join_init(struct join *j);
void join_release(struct join *j);
void join_stack(struct join *j, struct family_host *h, const struct stack_event *ev, size_t size,
		struct naming_result *named);
void join_end(struct join *j, struct family_host *h, const struct offcpu_end *e);
/* No more comes: lengths that still wait for a stack do without. */
void join_finish(struct join *j, struct family_host *h);

#endif
