/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information through the indexer and libdw, and the index through the reader: the result is
 * an error, or an index whose chains are sound. From a second "\177ELF" in the input on, the bytes
 * are the file that dwz shares.
 *
 * covers: loaders/index/lines/dwelf.c loaders/index/lines/dwread.c loaders/index/lines/dwunit.c
 *         loaders/index/lines/dwinline.c loaders/index/lines/dwline.c loaders/index/lines/lineset.c
 *         loaders/index/lines/linecode.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/index/indexer.h"
#include "schema/image/format.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct second {
	const uint8_t *data;
	size_t len;
};

static int by_altlink(void *ctx, const char *name, const uint8_t *id, size_t len)
{
	const struct second *s = ctx;
	int fd = s->data ? memfd_create("shared", MFD_CLOEXEC) : -1;

	(void)name;
	(void)id;
	(void)len;
	if (fd >= 0 && write(fd, s->data, s->len) != (ssize_t)s->len)
		abort();
	return fd;
}

static void check_at(const struct image *img, uint64_t vaddr)
{
	struct image_source_frame f[IMAGE_INLINE_DEPTH_MAX + 2];
	size_t n = image_lines_at(img, vaddr, f, IMAGE_INLINE_DEPTH_MAX + 2), sum = 0;

	if (n > IMAGE_INLINE_DEPTH_MAX + 1 || (n && f[n - 1].inlined))
		abort();
	for (size_t i = 0; i < n; i++)
		sum += (f[i].function ? strlen(f[i].function) : 0) +
		       (f[i].file ? strlen(f[i].file) : 0);
	if (sum > (IMAGE_INLINE_DEPTH_MAX + 1) * 2 * (size_t)(IMAGE_NAME_MAX + 1))
		abort();
}

static void check(const struct index_result *r)
{
	struct image *img = NULL;
	struct image_symbol s;

	if (image_open_bytes(r->data, r->size, &img, NULL))
		abort();
	for (size_t i = 0; i < 64 && image_symbol_get(img, i, &s); i++)
		for (uint64_t k = 0; k < s.size && k < 256; k += 3)
			check_at(img, s.addr + k);
	image_close(img);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *two = len > 64 ? memmem(data + 64, len - 64, "\177ELF\2", 5) : NULL;
	struct second second = {two, two ? (size_t)(data + len - two) : 0};
	const struct index_finder finder = {
		.ctx = &second, .by_altlink = by_altlink, .lines = INDEX_LINES_SOON};
	struct index_result r = {0};

	if (!indexer_run_bytes(data, len - second.len, &finder, &r, NULL)) {
		check(&r);
		free(r.data);
	}
	return 0;
}
