/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lasting: calls that wait for a disk and have not returned. The sums have a call once it returns,
 * and one may wait for a minute: each epoch has rows of the longest ones.
 * Pure.
 */
#ifndef SONDE_DISK_LASTING_H
#define SONDE_DISK_LASTING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/disk.h"

#define LASTING_NS   1000000000ll /* shorter ones have no row */
#define LASTING_MOST 16           /* rows of an epoch */

/* Of one process, file and kind of call. */
struct lasting {
	struct disk_syncing longest;
	uint32_t calls;
};

struct lasting_list { /* {0}: none. The longest of those that were added */
	struct lasting v[LASTING_MOST];
	size_t n;
};

void lasting_add(struct lasting_list *l, const struct disk_syncing *x);
/* "fsync", ...; of enum disk_call. */
const char *lasting_call_word(uint32_t call);

#endif
