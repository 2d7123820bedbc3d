/* SPDX-License-Identifier: Apache-2.0 */
/*
 * days: which files a question about several days reads: the file with a day's sums (archive/day.h)
 * instead of the day's archives, if the range contains all of these.
 *
 *   1. A day's file is read only if each archive that it names is one of the segments of the range,
 *      has the same stamp as before (files/stamp.h), and no other segment lies between them. If
 * not, or if the file is missing or damaged, the question reads the archives, without a message.
 *   2. A day gives the same answer as its archives one after the other, or fails with -EXDEV. After
 *      that the caller calls store_days_off and asks again.
 */
#ifndef SONDE_STORE_READ_DAYS_H
#define SONDE_STORE_READ_DAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/read/reader.h"

/* A file to read. */
struct store_part {
	char path[512];
	bool day;
	size_t first, n; /* the segments that it replaces; of a segment: itself */
};
/* `info`: the segments of [from, to), oldest first. Each belongs to one part; parts have the same
 * order. The caller frees the array. */
void store_days(const struct store_segment_info *info, size_t n, int64_t from_ns, int64_t to_ns,
		struct store_part **out, size_t *n_out);
/* From now on this process reads archives only. True: it read a day before. */
bool store_days_off(void);

#endif
