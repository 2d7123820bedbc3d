/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that nothing describes, by its form and followed; a table of rows printed for people; a
 * packed section. The first byte says which.
 *
 * covers: loaders/index/unwind/knowncode.c loaders/index/unwind/stackdepth.c
 * loaders/lib/code/x86insn.c loaders/index/unwind/rowprint.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/knowncode.h"
#include "loaders/index/unwind/rowprint.h"
#include "loaders/index/unwind/stackdepth.h"
#include "loaders/index/elf/unpack.h"

#define TEXT 0x1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void follow(const uint8_t *data, size_t len, struct rows *r)
{
	const uint64_t functions[] = {TEXT + 0xc0000, TEXT + 0xc0010, TEXT},
		       words[] = {TEXT + 0xc0020, 7};
	const struct stackdepth_input in = {.code = data,
					    .len = len,
					    .vaddr = TEXT + 0xc0000,
					    .functions = functions,
					    .function_count = 3,
					    .words = words,
					    .word_count = 2};

	if (len < 0x10000 && stackdepth_rows(&in, r))
		abort();
}

static void look(const uint8_t *data, size_t len)
{
	struct rows r;
	void *out = NULL;
	size_t size = 0;

	if (rows_init(&r, TEXT, TEXT + (1u << 20)))
		abort();
	knowncode_scan(data, len, TEXT, &r);
	knowncode_entry(data, len, TEXT + 0x40000, &r);
	knowncode_plt(data, len, TEXT + 0x80000, &r);
	knowncode_contexts(data, len, TEXT + 0x10000, &r);
	knowncode_crt(data, len, TEXT + 0xa0000, &r);
	follow(data, len, &r);
	if (rows_finish(&r, &out, &size))
		abort();
	free(out);
	rows_release(&r);
}

/* Rules of any kind, with an extension of any kind. */
static void print_rules(FILE *to, const uint8_t *data, size_t len)
{
	struct row_ext x;
	__u64 rule;

	if (len < sizeof(x))
		return;
	memcpy(&x, data, sizeof(x));
	for (size_t at = 0; at + sizeof(rule) <= len; at += sizeof(rule)) {
		memcpy(&rule, data + at, sizeof(rule));
		rowprint_rule(to, rule, &x, 1);
	}
}

static void print(const uint8_t *data, size_t len)
{
	static FILE *nowhere;
	void *copy = malloc(len + 1); /* aligned */

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	memcpy(copy, data, len);
	rowprint_table(nowhere, copy, len);
	print_rules(nowhere, copy, len);
	free(copy);
}

static void unpack(const uint8_t *data, size_t len)
{
	void *out = NULL;
	uint64_t size = 0;

	if (len < 2)
		return;
	size = data[0] | (uint64_t)data[1] << 8;
	if (!unpack_zlib(data + 2, len - 2, size, &out))
		free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	switch (data[0] % 3) {
	case 0:
		look(data + 1, len - 1);
		break;
	case 1:
		print(data + 1, len - 1);
		break;
	default:
		unpack(data + 1, len - 1);
	}
	return 0;
}
