/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostpages: all memory of the host that is in use, the kernel's too, by the stack that took it
 * (kind `pages`), if a person asks for it. probes/mem/mem_pages.bpf.h says which page frames are
 * watched; each represents as many as its group has.
 *
 *   1. The map `live` says which of them are in use, exactly; a record of the ring which stack took
 *      one. A reading (each `interval_ns`) goes through that map and adds up by stack.
 *   2. What a page is used for the kernel is asked at the reading after it was taken (pageclass.h);
 *      it is the leaf of its stack.
 *   3. The sum of all is what the kernel counts as used (MemTotal less MemFree): what no stack has
 *      is "[from before the recording]", which only becomes less, and "[without a stack]". Only
 *      where the capture is about all processes.
 *   4. Where more stacks than HOSTPAGES_RATE come in a second, half of the watched frames go.
 *   5. The number of a frame whose struct page lies at an address is found by touching pages and
 *      asking for their numbers: that needs CAP_SYS_ADMIN.
 */
#ifndef SONDE_MEM_HOSTPAGES_H
#define SONDE_MEM_HOSTPAGES_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "probes/mem.h"
#include "schema/base/err.h"

#define HOSTPAGES_GROUPS 262144 /* most */
#define HOSTPAGES_RATE   2000

struct hostpages;

struct hostpages_program { /* what the programs share with us: their variables */
	__u64 *base, *seen, *taken;
	__u32 *level, *tid;
	int live_fd;
};

/* How many frames a group has, as a power of two, and how many groups there are. 0: the kernel does
 * not say how many frames it has. */
uint32_t hostpages_groups(uint32_t *shift);
/* After the programs were attached: they begin to watch. NULL with *e: not possible. */
struct hostpages *hostpages_new(const struct hostpages_program *p, uint32_t groups, uint32_t shift,
				int64_t interval_ns, struct err *e);
void hostpages_free(struct hostpages *x); /* NULL is fine */
/* A page was taken: MEM_IS_FRAME(ev->tag). *named is not filled. */
void hostpages_sample(struct hostpages *x, const struct stack_event *ev, size_t size);
void hostpages_poll(struct hostpages *x, struct family_host *h, int64_t now_ns);
void hostpages_finish(struct hostpages *x, struct family_host *h);
/* Once a second. */
void hostpages_tick(struct hostpages *x, int64_t now_ns);

#endif
