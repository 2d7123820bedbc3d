/* SPDX-License-Identifier: Apache-2.0 */
/* blockdev: what /sys knows of block devices by number, read once each. */
#ifndef SONDE_HOST_BLOCKDEV_H
#define SONDE_HOST_BLOCKDEV_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#define BLOCKDEV_UNDER 192

struct blockdev {
	uint64_t number; /* major << 32 | minor */
	bool stacked;    /* lies over other devices, or over memory */
	bool partition;
	char name[64];
	char under[BLOCKDEV_UNDER]; /* the disks that it lies right on, with commas; of a loop
				       device that of its file. "": none, or not known */
	UT_hash_handle hh;
};

/* Borrowed from *all; NULL: there are too many. */
const struct blockdev *blockdev_of(struct blockdev **all, uint32_t major, uint32_t minor);
void blockdevs_release(struct blockdev **all);

#endif
