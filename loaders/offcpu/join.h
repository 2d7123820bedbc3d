/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: brings each stack together with its message: how long the wait was, or whom the waker woke.
 * A wait's stack comes when it begins, its length when it ends, each through the ring, identified
 * by (thread id, time of the stack); the woken thread comes right after the waker's stack. Most
 * often the stack comes first; one that is unwound later comes after. A wait that has both is an
 * amount of kind offcpu, one of kind runqueue, or both, with what it waited on. A message that gets
 * no stack within JOIN_PATIENCE_NS is stored without one. A stack whose wait has not ended is not
 * stored; if a younger one of its thread has come, its end was lost or is still in the ring, and is
 * awaited for JOIN_OVER_TURNS.
 *
 * Stacks are named when they come: their process may be gone, and its mappings forgotten, when the
 * wait ends. If the store's ids have changed by then, they are named again.
 */
#ifndef SONDE_OFFCPU_JOIN_H
#define SONDE_OFFCPU_JOIN_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/offcpu/object.h"
#include "probes/offcpu.h"
#include "schema/base/idmap.h"

struct family_host;
struct kallsyms;
struct naming_result;

/* late stacks come within 5 s, those held for mappings within 5 more */
#define JOIN_PATIENCE_NS 15000000000
/* calls of join_settle, one a second: what is held for mappings is so for 5 s */
#define JOIN_OVER_TURNS 8

#define JOIN_PLACES 64

struct join_place { /* what was found at a kernel address; addr 0: nothing yet */
	uint64_t addr;
	uint32_t place, unused;
};

struct join {
	struct idmap waiting; /* of thread and time -> struct join_wait * */
	struct idmap last; /* thread id -> key of its last stack that waits: an older one is over */
	uint32_t turn;     /* calls of join_settle, and one */
	struct kallsyms *symbols; /* the kernel's; NULL: not read, or hidden */
	struct join_place places[JOIN_PLACES];
	struct objects objects;
	/* The store's id of the thread with the program's id `id`, 0: unknown. NULL: wakers of
	 * waits are not stored. */
	uint32_t (*thread)(void *ctx, struct family_host *h, uint64_t id);
	void *ctx;
};

/* The kernel's symbols are those kept in the store's folder, if there are any (kallsyms.h):
 * only functions of the kernel itself are asked for. NULL: they are read. */
void join_init(struct join *j, const char *store_dir);
void join_release(struct join *j);
void join_stack(struct join *j, struct family_host *h, const struct stack_event *ev, size_t size,
		struct naming_result *named);
void join_end(struct join *j, struct family_host *h, const struct offcpu_end *e);
void join_wake(struct join *j, struct family_host *h, const struct offcpu_wake *e);
/* Messages older than JOIN_PATIENCE_NS at `now_ns` are stored without a stack; stacks whose end was
 * lost are dropped. */
void join_settle(struct join *j, struct family_host *h, int64_t now_ns);
/* No more comes: all that still waits for a stack does without. */
void join_finish(struct join *j, struct family_host *h);

#endif
