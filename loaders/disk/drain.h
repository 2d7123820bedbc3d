/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain: the sums of an epoch that is over, taken out of the programs' maps and stored as rows. Of
 * each kind the largest have a row; what is beyond the limits is summed: requests and opens in rows
 * without a process, calls on files by process as file `FOLDER/~other`. Opens of one command and
 * container have one row, with the process that was seen first. With long buckets the limits are a
 * quarter, so that the store holds as long: with buckets of FAMILY_ALWAYS_S and more.
 */
#ifndef SONDE_DISK_DRAIN_H
#define SONDE_DISK_DRAIN_H

#include <stdint.h>

#include "loaders/disk/devices.h"
#include "loaders/disk/files.h"
#include "loaders/disk/hooks.h"
#include "loaders/lib/bpf/family.h"

#define DRAIN_BLOCKS_MOST 1024
#define DRAIN_SYNCS_MOST  64
#define DRAIN_OPENS_MOST  32
#define DRAIN_CALLS_MOST  128
#define DRAIN_LOCKS_MOST  64
#define DRAIN_OTHER       FILES_OTHER

/* Of a limit for short buckets, what holds for this recording. */
size_t drain_most(const struct family_host *h, size_t n);
/* A histogram of the programs in the columns from `first` on (DISK_TIMES of schema/facts/disk.h).
 */
void drain_times(struct fact_row *row, int first, const uint32_t hist[DISK_SLOTS]);
/* `epoch` and earlier ones; `utc_ns`: into which bucket their rows go. */
void drain_epoch(struct hooks *k, struct devices *d, struct files *f, struct family_host *h,
		 uint32_t epoch, int64_t utc_ns);
/* Once the programs are detached: counts a request whose device has none at hand any more, though
 * the kernel reported no end of it to a program (docs/decisions/0282). */
void drain_unseen(struct hooks *k, struct devices *d, struct files *f, struct family_host *h,
		  int64_t utc_ns);
/* A single request. */
void drain_slow(struct devices *d, struct family_host *h, const struct disk_slow *r);

#endif
