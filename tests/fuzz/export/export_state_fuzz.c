/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: export/statetext.c
 * covers: export/spread.c
 *
 * Any bytes are a state or none: one that was read is written and read back the same. Any text is a
 * histogram or none, whose counts do not fall from bound to bound.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/spread.h"
#include "export/statetext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_state(const char *text, size_t len)
{
	struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
	struct totals t, u;

	totals_init(&t, 1000);
	totals_init(&u, 1000);
	if (!state_parse(&t, text, len)) {
		state_print(&t, &first);
		if (state_parse(&u, strbuf_str(&first), first.len))
			abort();
		state_print(&u, &second);
		if (strcmp(strbuf_str(&first), strbuf_str(&second)))
			abort();
	} else if (t.n) {
		abort();
	}
	totals_release(&t);
	totals_release(&u);
	strbuf_release(&first);
	strbuf_release(&second);
}

static void check_spread(const char *text, size_t len, unsigned steps)
{
	uint64_t below[METRIC_BOUNDS] = {0};

	if (len < 64 && spread_add(below, text, len, steps))
		for (int i = 1; i < METRIC_BOUNDS; i++)
			if (below[i] < below[i - 1] && below[i - 1] < 1ull << 60)
				abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_state((const char *)data, size);
	check_spread((const char *)data, size, 1);
	check_spread((const char *)data, size, 8);
	return 0;
}
