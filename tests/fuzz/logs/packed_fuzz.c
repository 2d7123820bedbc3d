/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_fuzz: whatever a compressed log file is, its header says something or nothing, and what is
 * in it is the same in small pieces and in large ones.
 *
 * covers: loaders/logs/packed/packed.c
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/logs/packed/packed.h"
#include "schema/base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MOST (1u << 20) /* of what is in it: of a few bytes can come a thousand times as many */

struct inside {
	uint64_t hash, bytes;
	bool damaged;
};

static struct inside read_in(int fd, size_t piece)
{
	struct packed *p = packed_new(fd);
	struct inside x = {.hash = HASH_SEED};
	char out[4096];
	size_t n;

	while (x.bytes < MOST && (n = packed_read(p, out, piece))) {
		if (n > piece)
			abort();
		for (size_t i = 0; i < n && x.bytes < MOST; i++, x.bytes++)
			x.hash = hash_bytes(x.hash, out + i, 1);
	}
	x.damaged = x.bytes < MOST && packed_is_damaged(p);
	packed_free(p);
	return x;
}

static void header(int fd, const uint8_t *data, size_t len)
{
	int64_t written_s = -7;
	uint32_t size = 7, last;

	if (!packed_look(fd, &written_s, &size)) {
		if (written_s != -7 || size != 7)
			abort(); /* it says nothing, and leaves what was there */
		return;
	}
	memcpy(&last, data + len - 4, 4);
	/* a year is at most 2200 and a zone 99 hours and 99 minutes off (forms.h) */
	if (len < 18 || size != last || written_s < -500000 || written_s > 7300000000)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct inside small, large;
	int fd = memfd_create("packed", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	header(fd, data, len);
	small = read_in(fd, 7);
	large = read_in(fd, 4096);
	if (small.hash != large.hash || small.bytes != large.bytes ||
	    small.damaged != large.damaged)
		abort();
	close(fd);
	return 0;
}
