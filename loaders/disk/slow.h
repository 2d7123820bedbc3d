/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow: which single requests are stored. All that took SLOW_NS or longer, but of those between two
 * takings only the SLOW_MOST longest; and of each device the longest of each minute, if it had none
 * that long. Pure.
 */
#ifndef SONDE_DISK_SLOW_H
#define SONDE_DISK_SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/disk.h"

#define SLOW_NS      50000000ull
#define SLOW_MOST    32
#define SLOW_DEVICES 64 /* more have no longest of the minute */

struct slow_device {
	struct disk_slow longest; /* of the minute */
};

struct slow { /* {0}: none */
	struct disk_slow list[SLOW_MOST];
	size_t n;
	uint64_t dropped; /* that there was no room for, so far */
	struct slow_device devices[SLOW_DEVICES];
	size_t n_devices;
};

void slow_add(struct slow *s, const struct disk_slow *r);
/* Copies what is stored next to out[SLOW_MOST], and forgets it. */
size_t slow_take(struct slow *s, struct disk_slow out[SLOW_MOST]);
/* The minute is over: the longest of each device to out[SLOW_DEVICES]. */
size_t slow_minute(struct slow *s, struct disk_slow out[SLOW_DEVICES]);

#endif
