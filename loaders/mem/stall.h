/* SPDX-License-Identifier: Apache-2.0 */
/* stall: waits for memory (probes/mem.h), stored as kind `memwait`: how many, and their time; and
 * which request was served meanwhile. */
#ifndef SONDE_MEM_STALL_H
#define SONDE_MEM_STALL_H

#include <linux/types.h>

#include "loaders/lib/bpf/family.h"
#include "probes/mem.h"

#define STALL_NOTES 256

struct stall_notes { /* zeroed: none. The last ones: a wait whose stack comes late finds its note */
	struct stall_note {
		uint64_t time_ns, tag;
		uint32_t tid;
	} v[STALL_NOTES];
	uint32_t n;
};

void stall_note(struct stall_notes *notes, const struct mem_serves *s);
/* Of the request that the thread of this record served, 0: none. */
uint64_t stall_tag_of(const struct stall_notes *notes, const struct stack_event *ev);
/* *named: its stack's names. */
void stall_store(const struct stall_notes *notes, struct family_host *h,
		 const struct stack_event *ev, struct naming_result *named);

#endif
