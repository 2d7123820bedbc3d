/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: the records of a BPF ring buffer, read where they lie. libbpf maps its data twice, one
 * behind the other, so that each record is whole; both count as resident, 8 MB here. This maps it
 * once, and copies the record that goes over its end.
 *
 * The kernel's form (kernel/bpf/ringbuf.c): a page that begins with the reader's position, which we
 * write, one that begins with the writer's, then the data, of a power of two. Each record: 8 bytes,
 * of which the first four are its length with two flags (still being written; to be passed over),
 * and as many bytes, up to a multiple of 8.
 */
#ifndef SONDE_L7_RING_H
#define SONDE_L7_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	uint64_t *reader; /* positions, as the kernel has them */
	const uint64_t *writer;
	const uint8_t *data;
	size_t size;    /* of data: a power of two */
	uint8_t *whole; /* own: the record that goes over the end */
	size_t room;
};

typedef void (*ring_fn)(void *ctx, const void *record, size_t size);

/* Maps the ring behind this descriptor, of `size` bytes of data. 0 or -errno. */
int ring_open(struct ring *r, int fd, size_t size);
bool ring_empty(const struct ring *r);
/* All that is written whole by now, in order. A record is valid until fn returns. Stops for good at
 * one that cannot be. */
void ring_read(struct ring *r, ring_fn fn, void *ctx);

#endif
