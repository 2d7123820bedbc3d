/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change_detect: finds events in readings. Pure: each function takes a reading and its state from
 * the previous one, and reports what changed.
 *
 *   1. Throttling has begun when a CPU limit stopped a cgroup in a tenth of the periods it ran in,
 *      and in CHANGE_THROTTLED_LEAST, between two readings; it has ended after CHANGE_QUIET
 *      readings with less than a fiftieth each.
 *   2. A file system is full when programs can get less than a hundredth of it, or of its files
 *      (inodes); no more when they can get a fiftieth. Of one that is read-only nothing is said.
 *   3. Limits changed where a reading has another one than that before, or none. A cgroup's first
 *      CHANGE_SETTLE readings are not compared: its runtime sets them one by one.
 */
#ifndef SONDE_HOST_FAMILY_CHANGE_DETECT_H
#define SONDE_HOST_FAMILY_CHANGE_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"

#define CHANGE_THROTTLED_LEAST 5
#define CHANGE_QUIET           3
#define CHANGE_SETTLE          2

enum change_change { CHANGE_SAME, CHANGE_BEGAN, CHANGE_ENDED };

struct change_throttle {
	uint64_t periods, throttled; /* as the kernel counts them */
	bool known, on;
	uint8_t quiet;
};
enum change_change change_throttle(struct change_throttle *w, uint64_t periods, uint64_t throttled);

struct change_level {
	bool known, on;
};
/* A gauge that is, or is not: the first reading is where it begins. */
enum change_change change_level(struct change_level *w, bool on);
/* Rule 2, of a thing that is `was` full so far. */
bool change_full(uint64_t size, uint64_t available, bool was);

struct change_limits {
	struct fact_row last;
	uint32_t readings;
};
/* Rule 3, of a row of cgroup_row: "memory 64 MiB, was 32 MiB; CPU none, was 0.50". False: none
 * changed. */
bool change_limits(struct change_limits *w, const struct fact_row *row, struct strbuf *out);

#endif
