/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tlscode_fuzz: any bytes as a function that reads or writes clear text: no site lies outside of
 * it, and each place can be read.
 *
 * covers: loaders/index/code/codeflow.c loaders/index/code/tlscode.c loaders/index/code/x86effect.c
 *         loaders/index/code/callsites.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/code/callsites.h"
#include "loaders/index/code/tlscode.h"

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

static void check(const struct tlscode_site *s, size_t len)
{
	if (s->at < BASE || s->at >= BASE + len || s->len > X86INSN_MAX ||
	    s->when > TLSCODE_NOT_TAKEN || s->condition > 15)
		abort();
	for (unsigned i = 0; i < 2; i++)
		if (s->value[i].kind > TLSCODE_NUMBER || s->value[i].reg > 15 ||
		    (s->value[i].kind != TLSCODE_NOWHERE && s->value[i].bytes != 4 &&
		     s->value[i].bytes != 8))
			abort();
}

static void one(const uint8_t *data, size_t len, struct tlscode_found *out, bool restarts,
		uint8_t second)
{
	struct bytes b = {data, len};
	const struct codeflow_reader r = {.ctx = &b, .read = read_bytes};
	const struct tlscode_asked asked = {.args = {X86_RDI, X86_RSI, X86_RDX, 0xff},
					    .second = second};
	struct codeflow f = {.restarts = restarts};

	if (codeflow_make(&f, &r, BASE, BASE + len)) {
		tlscode_find(&f, &asked, out);
		if (out->entry.len)
			check(&out->entry, len);
		for (size_t i = 0; i < out->result_count; i++)
			check(&out->results[i], len);
		tlscode_find_slow(&f, &asked, out);
	}
	codeflow_release(&f);
}

static uint64_t end_of(void *ctx, uint64_t start)
{
	const struct bytes *b = ctx;

	return start >= BASE && start < BASE + b->len ? BASE + b->len : 0;
}

/* Any bytes as a function whose calls are followed. */
static void calls(const uint8_t *data, size_t len, bool go)
{
	struct bytes b = {data, len};
	const struct codeflow_reader r = {.ctx = &b, .read = read_bytes};
	const struct callsites_host host = {.ctx = &b, .reader = &r, .end_of = end_of};
	static struct callsites out;

	if (callsites_find(&host, BASE, BASE + len, go, &out))
		return;
	if (out.n > CALLSITES_MOST || !out.n || !out.at[0].begins)
		abort();
	for (size_t i = 0; i < out.n; i++)
		if (out.at[i].at < BASE || out.at[i].at >= BASE + len ||
		    (out.at[i].base != X86_RSP && out.at[i].base != X86_RBP) ||
		    out.at[i].when > TLSCODE_NOT_TAKEN || (i && out.at[i].begins))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct tlscode_found out;

	if (len > 2048)
		return 0;
	one(data, len, &out, false, 0xff);
	one(data, len, &out, true, X86_RDX);
	calls(data, len, false);
	calls(data, len, true);
	return 0;
}
