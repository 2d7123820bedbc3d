/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: reads the bytes of an untrusted file, from a descriptor (pread) or from memory (tests,
 * unpacked debug data). Never from a mapping: a file truncated while it is read gives an error, not
 * a SIGBUS.
 *
 * source_read adds each byte it returns to `hash`, in the order of the reads. That is the content
 * hash of the index's key: two files with the same reads give the same index, and no byte that
 * matters can be forgotten. All reads of one index together are limited (SOURCE_BUDGET), whatever
 * the file claims.
 */
#ifndef SONDE_INDEX_SOURCE_H
#define SONDE_INDEX_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#define SOURCE_READ_MAX (256ull << 20) /* bytes, one read */
#define SOURCE_BUDGET   (448ull << 20) /* bytes, all reads of one index together */

struct source {
	int fd;           /* -1: memory; borrowed */
	const void *data; /* borrowed */
	uint64_t size;
	uint64_t *hash; /* borrowed; shared by the sources of one index */
	uint64_t *left; /* borrowed; what is left of the budget */
};

/* -errno of fstat, -EINVAL if it is no regular file. */
int source_init_fd(struct source *s, int fd, uint64_t *hash, uint64_t *left);
void source_init_bytes(struct source *s, const void *data, size_t len, uint64_t *hash,
		       uint64_t *left);

/* A fresh buffer (free it) with these bytes and one NUL after them. -ERANGE: outside of the file,
 * -EFBIG: more than allowed, -ENOMEM, -ESTALE: the file became shorter, -errno of pread. */
int source_read(struct source *s, uint64_t offset, uint64_t len, void **out);
/* The same into a buffer that is there, of `len` bytes. */
int source_read_into(struct source *s, uint64_t offset, uint64_t len, void *buf);
/* CRC-32 (zlib's) of the whole file, neither hashed nor budgeted. -EFBIG above `max` bytes. */
int source_crc32(const struct source *s, uint64_t max, uint32_t *out);

#endif
