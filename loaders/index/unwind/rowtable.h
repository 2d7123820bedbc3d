/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowtable: splits an UNWIND section (probes/lib/tables.h, 2 and 3) into a list of addresses and
 * rules again, for people and for tests. Pure over (bytes, len).
 */
#ifndef SONDE_INDEX_ROWTABLE_H
#define SONDE_INDEX_ROWTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "probes/lib/tables.h"

struct rowtable_row {
	uint64_t addr; /* virtual address */
	uint64_t rule;
};

struct rowtable {
	const struct unwind_head *head; /* borrowed, as all but `rows` */
	const struct row_ext *exts;     /* head->ext_count */
	struct rowtable_row *rows;      /* own; in order, no two neighbours with the same rule */
	size_t count;
};

/* `data` is borrowed and 8-aligned. -EBADMSG: it is not sound: sizes, or a number that is not
 * there; -ENOMEM. */
int rowtable_init(struct rowtable *t, const void *data, size_t size);
void rowtable_release(struct rowtable *t);

#endif
