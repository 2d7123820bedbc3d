/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jvmfile: parses what a Java virtual machine (HotSpot) writes about itself into
 * /tmp/hsperfdata_USER/PID. All numbers are in the byte order that the file names:
 *
 *   head    0 u32 0xcafec0c0 (always big-endian), 4 u8 byte order (0 big, 1 little), 5 u8 major
 *           (2), 6 u8 minor, 7 u8 accessible: 1 once it may be read; 8 i32 used, 12 i32 overflow,
 *           16 i64 time of change, 24 i32 where the entries begin, 28 i32 how many
 *   entry   0 i32 length, 4 i32 where its name is (in the entry; it ends by NUL), 8 i32 length of a
 *           vector (0: one value), 12 u8 type ('J': i64, 'B': bytes), 13 u8 flags, 14 u8 unit, 15
 *           u8 variability, 16 i32 where its data is (in the entry)
 *
 * The entries used are in the table in the .c; there are sun.os.hrt.frequency ticks a second.
 * Another kind of file, or one with a wrong length, gives nothing; unknown entries are skipped.
 */
#ifndef SONDE_HOST_FAMILY_JVMFILE_H
#define SONDE_HOST_FAMILY_JVMFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/facts/fact.h"

#define JVMFILE_MAX (1u << 20) /* bytes; 32 KiB as a rule */

struct jvmfile {
	struct fact_row row; /* counters and gauges of jvm_row, as the file has them */
	char collector[128], version[64];
};
/* false: it is not such a file, or must not be read (yet). */
bool jvmfile_parse(const void *data, size_t len, struct jvmfile *out);

/* Of /proc/PID/maps the path and inode of the one that is mapped. False: none is, or it is deleted.
 */
bool jvmfile_mapped(const char *maps, size_t len, char *path, size_t size, uint64_t *ino);

#endif
