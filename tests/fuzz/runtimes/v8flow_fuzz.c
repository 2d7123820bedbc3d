/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8flow_fuzz: any bytes as optimised code, with descriptions that are made up: which functions run
 * where it was interrupted? The first two bytes are how many exits it has and how many bytes follow
 * its instructions.
 *
 * covers: loaders/lib/runtimes/v8/v8flow.c loaders/lib/runtimes/v8/v8flow_graph.c
 *         loaders/lib/code/x86insn.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/v8/v8flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int64_t of_call(void *ctx, uint32_t offset)
{
	(void)ctx;
	return offset % 3 ? (int64_t)(offset % 251) : -1;
}

/* A chain of up to four frames, by the description's bits. */
static void read_chain(void *ctx, uint32_t description, struct v8flow_chain *out)
{
	(void)ctx;
	out->n = description % 5;
	for (size_t i = 0; i < out->n; i++)
		out->frames[i] =
			(struct v8_inlined){.bytecode = (int32_t)(description >> 2 * i & 3),
					    .literal = description >> i & 1};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct v8flow_code c = {.exit_bytes = 4, .of_call = of_call, .read = read_chain};
	struct v8flow_chain chain;
	struct v8flow *f;
	uint8_t *bytes;

	if (len < 3)
		return 0;
	c.exits = data[0];
	bytes = malloc(len - 2);
	memcpy(bytes, data + 2, len - 2);
	c.bytes = bytes;
	c.all = len - 2;
	c.len = data[1] < c.all ? c.all - data[1] : c.all;
	f = v8flow_new(&c);
	for (uint32_t at = 0; f && at < c.len; at++) {
		v8flow_at(f, &c, at, &chain);
		if (chain.n > 4 || (chain.n && chain.frames[chain.n - 1].bytecode != V8_NOWHERE))
			abort();
	}
	v8flow_free(f);
	free(bytes);
	return 0;
}
