/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed: what a log file says that was compressed when it was rotated (gzip, RFC 1952), and when
 * that was written last.
 *
 *   1. The members of the file one after the other; PACKED_MOST bytes, then it counts as damaged.
 *   2. The last writing of what is packed: MTIME of the header, or, of Docker's, which has none
 *      there, "lastTime" in the header's extra field. 0: neither says it.
 *   3. Its size is ISIZE, the last four bytes: the size modulo 2^32.
 */
#ifndef SONDE_LOGS_PACKED_H
#define SONDE_LOGS_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKED_MOST (1ull << 30)

struct packed;

/* `fd` is borrowed. */
struct packed *packed_new(int fd);
void packed_free(struct packed *p);
/* The next bytes; 0: there are no more. */
size_t packed_read(struct packed *p, char *to, size_t room);
/* It ended before its end, by what it has read so far. */
bool packed_is_damaged(const struct packed *p);

/* Rules 2 and 3; false: it is no such file. */
bool packed_look(int fd, int64_t *written_s, uint32_t *size);

#endif
