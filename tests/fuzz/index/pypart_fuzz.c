/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pypart_fuzz: any bytes as the beginning of _PyRuntime, and as code: its version, and spans of
 * .eh_frame that it jumps into.
 *
 * covers: loaders/index/runtimes/pylayout.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/runtimes/pylayout.h"
#include "loaders/index/runtimes/pypart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct bytes {
	const uint8_t *data;
	size_t len;
	char text[25];
};

static const char *text_at(void *ctx, uint64_t addr)
{
	struct bytes *b = ctx;
	size_t left = addr < b->len ? b->len - (size_t)addr : 0;

	left = left < sizeof(b->text) - 1 ? left : sizeof(b->text) - 1;
	memcpy(b->text, b->data + (left ? addr : 0), left);
	b->text[left] = 0;
	return left ? b->text : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rows_span spans[8];
	struct rows rows = {.base = 0x1000, .spans = spans, .span_count = 8};
	struct bytes b = {.data = data, .len = len};
	struct elf_range out[4];
	struct python_layout l;
	uint64_t at = 0;
	unsigned n;

	for (uint32_t i = 0; i < 8; i++)
		spans[i] = (struct rows_span){
			.lo = i << 28, .hi = (i << 28) + 0x8000000, .source = ROWS_EH_FRAME};
	if (len >= 8 && pylayout_of_offsets(data, len, &l, &at) &&
	    (l.shape != PYTHON_SHIMS || l.frame_back >= PYTHON_NO_CFRAME))
		abort();
	for (uint32_t minor = 0x0206; minor < 0x0310; minor++)
		if (len && pylayout_of_version(minor << 16 | data[0], &l, &at) &&
		    l.version >> 16 != minor)
			abort();
	pypart_version(data, len, 0, text_at, &b);
	n = pypart_jumps(data, len, 0x10000, &rows, out, 4);
	if (n > 4)
		abort();
	for (unsigned i = 1; i < n; i++)
		if (out[i].start <= out[i - 1].start)
			abort();
	return 0;
}
