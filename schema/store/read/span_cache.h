/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span_cache: what finished segments span, remembered from one process to the next, so that a file
 * that is not of the range is not opened: to parse its schema takes longer than most questions. A
 * program that starts many of them (sonde-serve) passes them one file (a memfd) in $SONDE_SPANS, a
 * descriptor's number; without it nothing is remembered.
 *
 *  1. A record is of a file as it is: device, inode, size, times of change of data and of inode.
 *     Any write changes the last.
 *  2. Only a file without a log (-wal, -journal) is looked up or remembered: such a file is
 *     complete in itself.
 *  3. A file that was changed less than SPAN_CACHE_SETTLED_S ago is not remembered: another write
 *     may leave the same stamp.
 *  4. Records are appended in one write each, and carry a checksum: a torn or foreign record is
 *     ignored. SPAN_CACHE_MOST of them at most.
 */
#ifndef SONDE_STORE_READ_SPAN_CACHE_H
#define SONDE_STORE_READ_SPAN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define SPAN_CACHE_SETTLED_S 2
#define SPAN_CACHE_MOST      16384

struct span_cache_file { /* which file, as it is */
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

struct span_cache_span {
	int64_t from_ns, to_ns; /* from_ns > to_ns: it holds nothing */
};

/* Once, before threads. */
void span_cache_load(void);
/* False: its span is not a matter of the file alone, or it is not there. */
bool span_cache_of(const char *path, struct span_cache_file *f);
bool span_cache_get(const struct span_cache_file *f, struct span_cache_span *span);
/* Any thread. */
void span_cache_put(const struct span_cache_file *f, const struct span_cache_span *span);

#endif
