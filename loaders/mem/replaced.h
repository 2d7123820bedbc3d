/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replaced: sampled pages of a process whose place others have taken. Memory that was freed and
 * mapped again at the same place has pages of both times, and the kernel only says that something
 * is there.
 *
 *   1. Of samples that represent themselves alone (exact) the youngest of one place is right.
 *   2. Of 32 neighbours among the others, those that represent more than fits between them, and a
 *      quarter more by chance, lose the oldest. A page that lies in another frame than before was
 *      touched again, or the kernel moved it: then its neighbours are not younger.
 *
 * Pure.
 */
#ifndef SONDE_MEM_REPLACED_H
#define SONDE_MEM_REPLACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_page {
	uint64_t page;
	uint32_t site;
	uint32_t pages; /* that it represents */
	bool exact;     /* and no others: its own */
	uint64_t time_ns;
	uint64_t moved_ns; /* mremap(2) gave it this address; 0: it never did */
	bool changed;      /* another frame is there than at the last reading */
	bool unsized;      /* it was not there when it was asked for its size */
	bool huge;
	uint64_t frame; /* 0: not known */
};

/* By address. */
void replaced_sort(struct held_page *pages, size_t n);
/* In any order; returns how many are left, in front. */
size_t replaced_drop(struct held_page *pages, size_t n);

#endif
