/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held: deleted files that programs have open: rows of held_row. What they take on the disk is free
 * once the last one closes them. Files that only mappings keep are not seen, nor those in memory
 * (tmpfs, memfd).
 */
#ifndef SONDE_DISK_HELD_H
#define SONDE_DISK_HELD_H

#include <stdint.h>

#include "loaders/disk/hooks.h"
#include "loaders/disk/mounts.h"
#include "loaders/lib/bpf/family.h"

#define HELD_MOST  32   /* rows of one look: the largest */
#define HELD_KNOWN 4096 /* files of one look: more are not looked at */

/* One look at all processes; `utc_ns`: into which bucket the rows go. */
void held_look(struct hooks *k, const struct mounts *mounts, struct family_host *h, int64_t utc_ns);

#endif
