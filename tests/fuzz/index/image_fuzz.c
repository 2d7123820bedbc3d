/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of image indexes. The checksum and the size are put right first, or nothing would get past them.
 *
 * covers: schema/image/image.c schema/image/go.c
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/hash.h"
#include "schema/image/format.h"
#include "schema/image/go.h"
#include "schema/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void ask(const struct image *img)
{
	struct image_symbol s, at;
	struct image_go_record go;
	uint64_t v = 0;
	size_t sum = 0;

	for (size_t i = 0; image_symbol_get(img, i, &s); i++) {
		sum += strlen(s.name);
		if (!image_symbol_at(img, s.addr + s.size - 1, &at))
			abort();
	}
	for (uint64_t offset = 0; offset < 0x100000; offset += 0x7ff)
		if (image_offset_to_vaddr(img, offset, &v))
			sum += image_symbol_at(img, v, &s) ? strlen(s.name) : 0;
	if (image_go(img, &go) && memchr(go.version, 0, sizeof(go.version)) == NULL)
		abort();
	if (image_ident(img)->build_id_len > sizeof(image_ident(img)->build_id) || sum == SIZE_MAX)
		abort();
}

static void by_descriptor(const uint8_t *data, size_t len)
{
	int fd = memfd_create("index", MFD_CLOEXEC);
	struct image *img = NULL;

	if (write(fd, data, len) != (ssize_t)len)
		abort();
	if (!image_open_fd(fd, &img, NULL))
		image_close(img);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const size_t from = offsetof(struct image_header, total_size);
	uint8_t *copy = malloc(len + 1);
	struct image_header h;
	struct image *img = NULL;

	memcpy(copy, data, len);
	if (len >= sizeof(h)) {
		memcpy(&h, copy, sizeof(h));
		if (h.pad[0] != 1) {
			h.total_size = len;
			memcpy(copy, &h, sizeof(h));
			h.checksum = hash_bytes(HASH_SEED, copy + from, len - from);
			memcpy(copy, &h, sizeof(h));
		}
	}
	if (!image_open_bytes(copy, len, &img, NULL)) {
		ask(img);
		image_close(img);
	}
	if (len % 16 == 0)
		by_descriptor(copy, len);
	free(copy);
	return 0;
}
