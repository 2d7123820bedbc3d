/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordpart_fuzz: any bytes as a function that ciphers records, and as code that loads addresses:
 * no site lies outside of it.
 *
 * covers: loaders/index/code/recordpart.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/code/nameless.h"
#include "loaders/index/code/recordpart.h"

#define BASE 0x10000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct bytes {
	const uint8_t *data;
	size_t len;
};

static size_t read_bytes(void *ctx, uint64_t vaddr, uint8_t *out)
{
	const struct bytes *b = ctx;
	size_t n;

	if (vaddr < BASE || vaddr - BASE >= b->len)
		return 0;
	n = b->len - (vaddr - BASE);
	n = n < X86INSN_MAX ? n : X86INSN_MAX;
	memcpy(out, b->data + (vaddr - BASE), n);
	return n;
}

/* Each function goes on to the end. */
static uint64_t end_of(void *ctx, uint64_t start)
{
	const struct bytes *b = ctx;

	return start >= BASE && start < BASE + b->len ? BASE + b->len : 0;
}

static uint64_t offset_of(void *ctx, uint64_t vaddr)
{
	(void)ctx;
	return vaddr;
}

static bool put(void *ctx, const struct image_tls_site *s)
{
	const struct bytes *b = ctx;

	if (s->offset < BASE || s->offset >= BASE + b->len || s->length > X86INSN_MAX ||
	    s->result != IMAGE_TLS_RECORD)
		abort();
	return true;
}

static void load(void *ctx, size_t at, size_t target)
{
	const struct bytes *b = ctx;

	if (at + 7 > b->len || target > 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = {data, len};
	const struct codeflow_reader reader = {.ctx = &b, .read = read_bytes};
	const struct recordpart_host h = {
		.ctx = &b, .reader = &reader, .end_of = end_of, .offset_of = offset_of, .put = put};
	const uint64_t targets[] = {BASE, BASE + 0x100};

	if (len > 2048)
		return 0;
	for (uint8_t shape = IMAGE_TLS_SEAL_SCATTER; shape <= IMAGE_TLS_RING; shape++)
		recordpart_add(&h, &(struct record_function){.start = BASE,
							     .end = BASE + len,
							     .library = IMAGE_TLS_RUSTLS,
							     .operation = IMAGE_TLS_READ,
							     .shape = shape});
	nameless_loads(data, len, BASE, targets, 2, load, &b);
	return 0;
}
