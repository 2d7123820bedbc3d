/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/mem.h"

#define HEAD 8

int ring_open(struct ring *r, int fd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *reader, *writer;

	if (size < page || size & (size - 1))
		return -EINVAL;
	reader = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (reader == MAP_FAILED)
		return -errno;
	writer = mmap(NULL, page + size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (writer == MAP_FAILED) {
		int err = -errno;

		munmap(reader, page);
		return err;
	}
	*r = (struct ring){.reader = reader,
			   .writer = writer,
			   .data = (const uint8_t *)writer + page,
			   .size = size};
	return 0;
}

/* The `len` bytes of data from `at` on, in one piece. */
static const void *record_whole(struct ring *r, size_t at, size_t len)
{
	size_t first = r->size - at;

	if (len <= first)
		return r->data + at;
	if (len > r->room) {
		r->whole = mem_realloc(r->whole, len);
		r->room = len;
	}
	memcpy(r->whole, r->data + at, first);
	memcpy(r->whole + first, r->data, len - first);
	return r->whole;
}

bool ring_empty(const struct ring *r)
{
	return *r->reader == __atomic_load_n(r->writer, __ATOMIC_ACQUIRE);
}

void ring_read(struct ring *r, ring_fn fn, void *ctx)
{
	uint64_t at = *r->reader;

	while (at < __atomic_load_n(r->writer, __ATOMIC_ACQUIRE)) {
		size_t place = (size_t)at & (r->size - 1);
		uint32_t head = __atomic_load_n((const uint32_t *)(const void *)(r->data + place),
						__ATOMIC_ACQUIRE);
		size_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT || len > r->size - HEAD)
			return;
		if (!(head & BPF_RINGBUF_DISCARD_BIT))
			fn(ctx, record_whole(r, (place + HEAD) & (r->size - 1), len), len);
		at += (HEAD + len + 7) & ~(size_t)7;
		__atomic_store_n(r->reader, at, __ATOMIC_RELEASE);
	}
}
