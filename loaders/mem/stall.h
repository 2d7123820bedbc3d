/* SPDX-License-Identifier: Apache-2.0 */
/* stall: waits for memory (probes/mem.h), stored as kind `memwait`: how many, and their time. */
#ifndef SONDE_MEM_STALL_H
#define SONDE_MEM_STALL_H

#include <linux/types.h>

#include "loaders/lib/bpf/family.h"
#include "probes/mem.h"

/* *named: its stack's names. */
void stall_store(struct family_host *h, const struct stack_event *ev, struct naming_result *named);

#endif
