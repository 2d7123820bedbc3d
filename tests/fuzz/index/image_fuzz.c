/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of image indexes. The checksums and the size are put right first, or nothing would get
 * past them.
 *
 * covers: schema/image/checksum.c schema/image/image.c schema/image/go.c schema/image/lines.c
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/image/checksum.h"
#include "schema/image/format.h"
#include "schema/image/go.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Every frame's names have an end, and no chain is longer than allowed. */
static size_t ask_lines(const struct image *img, uint64_t vaddr)
{
	struct image_source_frame f[IMAGE_INLINE_DEPTH_MAX + 2];
	size_t n = image_lines_at(img, vaddr, f, IMAGE_INLINE_DEPTH_MAX + 2),
	       sum = image_function_line(img, vaddr);

	if (n > IMAGE_INLINE_DEPTH_MAX + 1)
		abort();
	for (size_t i = 0; i < n; i++) {
		if (f[i].inlined != (f[i].function != NULL) || (f[i].inlined && i + 1 == n))
			abort();
		sum += f[i].function ? strlen(f[i].function) : 0;
		sum += f[i].file ? strlen(f[i].file) : 0;
	}
	return sum;
}

static void ask(const struct image *img)
{
	struct image_symbol s, at;
	struct image_go_record go;
	const void *python = NULL;
	uint64_t v = 0;
	size_t sum = 0, size = 0;

	for (size_t i = 0; image_symbol_get(img, i, &s); i++) {
		sum += strlen(s.name) + ask_lines(img, s.addr) +
		       ask_lines(img, s.addr + s.size / 2);
		if (!image_symbol_at(img, s.addr + s.size - 1, &at))
			abort();
	}
	for (uint64_t offset = 0; offset < 0x100000; offset += 0x7ff)
		if (image_offset_to_vaddr(img, offset, &v))
			sum += ask_lines(img, v) +
			       (image_symbol_at(img, v, &s) ? strlen(s.name) : 0);
	sum += image_has_lines(img) + image_lines_size(img).rows;
	sum += image_lines_note(img) ? strlen(image_lines_note(img)) : 0;
	if (image_go(img, &go) && memchr(go.version, 0, sizeof(go.version)) == NULL)
		abort();
	if (image_part(img, IMAGE_SECTION_PYTHON, &python, &size) && size)
		sum += ((const uint8_t *)python)[size - 1];
	if (image_ident(img)->build_id_len > sizeof(image_ident(img)->build_id) || sum == SIZE_MAX)
		abort();
}

static void by_descriptor(const uint8_t *data, size_t len)
{
	int fd = memfd_create("index", MFD_CLOEXEC);
	struct image *img = NULL;

	if (write(fd, data, len) != (ssize_t)len)
		abort();
	image_lines_later(fd);
	if (!image_open_fd(fd, &img, NULL))
		image_close(take_ptr(img));
	if (!image_open_rows_fd(fd, &img, NULL)) {
		ask(img);
		image_close(img);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len + 1);
	struct image_header h;
	struct image *img = NULL;

	memcpy(copy, data, len);
	if (len >= sizeof(h)) {
		memcpy(&h, copy, sizeof(h));
		if (h.pad[0] != 1) {
			h.total_size = len;
			memcpy(copy, &h, sizeof(h));
			image_checksums_make(copy, len);
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
