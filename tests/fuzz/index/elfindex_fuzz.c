/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole file through the indexer, and the index through the reader: the result is an error, or
 * an index that opens and whose pieces are in order. From a second "\177ELF" in the input on, the
 * bytes are the separate debug file.
 *
 * covers: loaders/index/elf/elffile.c loaders/index/elfsyms.c loaders/index/go/gotable.c
 *         loaders/index/elf/symset.c loaders/index/compose.c loaders/index/indexer.c
 *         loaders/index/elf/minidebug.c loaders/index/elf/demangle.c
 *         loaders/index/unwind/unwind.c loaders/index/elf/unpack.c
 *         loaders/index/runtimes/pypart.c loaders/index/runtimes/phppart.c
 *         loaders/index/runtimes/rubypart.c loaders/index/runtimes/hotspotpart.c
 *         loaders/index/runtimes/v8part.c loaders/index/elf/runsyms.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/index/indexer.h"
#include "schema/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct debug {
	const uint8_t *data;
	size_t len;
};

static int give(const struct debug *d)
{
	int fd = memfd_create("debug", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, d->data, d->len) != (ssize_t)d->len)
		abort();
	return fd;
}

static int by_build_id(void *ctx, const uint8_t *id, size_t len)
{
	(void)id;
	(void)len;
	return give(ctx);
}

static int by_debuglink(void *ctx, const char *name, uint32_t n)
{
	(void)name;
	return n < 2 ? give(ctx) : -1;
}

static void check(const struct index_result *r)
{
	struct image *img = NULL;
	struct image_symbol s, t;
	uint64_t v;

	if (image_open_bytes(r->data, r->size, &img, NULL))
		abort();
	for (size_t i = 0; image_symbol_get(img, i, &s); i++)
		if (!image_symbol_at(img, s.addr + s.size - 1, &t) || t.addr > s.addr + s.size)
			abort();
	image_offset_to_vaddr(img, 0x1000, &v);
	image_close(img);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *second = len > 64 ? memmem(data + 64, len - 64, "\177ELF\2", 5) : NULL;
	struct debug d = {second, second ? (size_t)(data + len - second) : 0};
	const struct index_finder finder = {
		.ctx = &d, .by_build_id = by_build_id, .by_debuglink = by_debuglink};
	struct index_result r = {0};

	if (!indexer_run_bytes(data, len - d.len, second ? &finder : NULL, &r, NULL)) {
		check(&r);
		free(r.data);
	}
	return 0;
}
