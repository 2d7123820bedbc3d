/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape_profile_fuzz: whatever a program hands out as a profile is read within its bounds and
 * limits, mappings before stacks.
 *
 * covers: loaders/scrape/profile.c schema/base/proto.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/scrape/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct seen {
	uint64_t stacks, frames;
};

static void on_mapping(void *ctx, const struct wire_mapping *m)
{
	(void)m;
	if (((struct seen *)ctx)->stacks)
		abort();
}

static void on_stack(void *ctx, const uint64_t values[WIRE_VALUES], const uint64_t *addresses,
		     size_t n)
{
	struct seen *s = ctx;

	s->stacks++;
	s->frames += n;
	for (int i = 0; i < WIRE_VALUES; i++)
		if (values[i] > INT64_MAX)
			abort();
	if (n > WIRE_DEPTH || s->stacks > WIRE_STACKS_MAX || s->frames > WIRE_FRAMES_MAX ||
	    (n && addresses[n - 1] == 1))
		return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	for (int ask = 0; ask <= WIRE_ASKS; ask++) {
		struct seen s = {0, 0};
		const struct profile_out out = {
			.ctx = &s, .mapping = on_mapping, .stack = on_stack};
		struct wire_end end;

		profile_read(data, len, (enum wire_ask)ask, &out, &end);
		if (s.stacks > WIRE_STACKS_MAX || s.frames > WIRE_FRAMES_MAX)
			abort();
	}
	return 0;
}
