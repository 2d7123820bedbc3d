/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held: the sampled pages of each process, by the stack that touched them first, and what is still
 * there of them.
 *
 *   1. A sample is `period` page faults, stored at once as kind `pagefaults`: faults, and the bytes
 *      that they brought (a huge page is 2 MiB). Where another program samples the faults that
 *      bring huge pages (hugefaults.h), its samples are bytes without faults, and the others of
 *      such faults are faults without bytes.
 *   2. Pages that are the process's own, private and without a file behind them, are kept, each
 * with the number that its sample represents. At each reading of the process the kernel is asked
 * which are still there; those are the gauge `mem` of their stack. So `mem` says who made a process
 *      grow, not who holds the memory now: an allocator that reuses a page is not seen.
 *      What the largest sample of a stack represents is stored with it, as its `max`: 0 where each
 *      page is counted. So the root of that times the bytes is about their standard error.
 *   3. The sum over a process's stacks and three rows that have none is what the kernel counts
 *      (RssAnon + VmSwap). The first is "[from before the recording]"; where the process began
 *      within it, by a fork without an exec, that is "[from its parent]": pages which both have
 *      until one of them writes there, and then the one that writes has it by its stack. The second
 *      is "[huge pages without a sample]", as a fault brings 2 MiB of those and few faults are
 *      sampled. The third is "[without a sample]": pages that came without a fault, by
 *      MAP_POPULATE, mlock or O_DIRECT, and what chance has in the estimates. A process of which
 *      there are no samples has them too, from 8 MiB on.
 *      Where samples come to more than the kernel counts (a page that is first read, then written,
 *      faults twice) they are reduced in proportion.
 *   4. A process has HELD_PAGES at most, or HELD_PAGES_ALWAYS: then every second page goes, and the
 * others represent twice as many. All stacks together have HELD_BYTES at most; those beyond are
 * one, without frames.
 *   5. Memory that is freed and mapped again at the same place would seem to be there still: a new
 *      mapping (held_mapped) drops the older pages below it. Where memory comes back otherwise
 *      (MADV_DONTNEED, brk), neighbours that represent more than fits between them lose the oldest.
 *   6. Memory that mremap(2) moves, as realloc does with large blocks, keeps its stacks. The record
 *      of a move comes later than its effect: pages of a process that moved some within MOVER_NS,
 *      and that are not where they were last known, count for one reading more.
 *   7. An exec drops all pages.
 *   8. A process that the kernel kills for memory is not asked any more; what it held then is what
 *      the kernel counted, by the stacks of the pages that are known.
 *
 * A process is read again when it has new samples or its memory changed by a sixteenth, not more
 * often than every `interval_ns`; and in each new segment of the store.
 */
#ifndef SONDE_MEM_HELD_H
#define SONDE_MEM_HELD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "probes/mem.h"

#define HELD_PAGES        4096
#define HELD_PAGES_ALWAYS 512 /* while no person waits: an error of 4 % of a whole process */
#define HELD_BYTES        (24u << 20)

struct held;

struct held *held_new(int64_t interval_ns, size_t most_pages);
void held_free(struct held *x); /* NULL is fine */
/* Whether the kernel has made huge pages since the recording began: only then a process is asked
 * for them, for which the kernel walks through all of its memory. At first: yes. */
void held_huge(struct held *x, bool may_be);
/* Stores a sample and keeps its page. `apart`: another program samples huge pages.
 * *named: its stack's names. */
void held_sample(struct held *x, struct family_host *h, const struct stack_event *ev, size_t size,
		 bool apart, struct naming_result *named);
/* A process has a new mapping here: what it had here before is gone. */
void held_mapped(struct held *x, const struct mem_mapped *m);
/* The kernel kills it for memory: it is not read any more. */
void held_dying(struct held *x, const struct mem_victim *v);
/* The same, in its place in time: what it held at that moment is stored, by the samples up to then.
 */
void held_victim(struct held *x, struct family_host *h, const struct mem_victim *v);
/* Reads the processes that are due, for some ms at most. */
void held_poll(struct held *x, struct family_host *h, int64_t now_ns);
/* The end: reads all, until then (boot clock) at the latest. */
void held_finish(struct held *x, struct family_host *h, int64_t until_ns);

#endif
