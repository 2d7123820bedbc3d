/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offcpu_record_fuzz: a stream of ring records of any bytes, in any order, is taken or refused;
 * what is taken is joined, and what it accounts for is what the store gets: nothing twice, nothing
 * missing once the stream has ended.
 *
 * covers: loaders/offcpu/record.c loaders/offcpu/join.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/naming.h"
#include "loaders/offcpu/join.h"
#include "loaders/offcpu/record.h"
#include "tests/unit/loaders/offcpu/fakes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void take(struct join *j, struct family_host *h, const struct stack_event *ev, size_t size)
{
	struct naming_result named = {0};

	if (record_is_end(ev, size))
		join_end(j, h, (const struct offcpu_end *)ev);
	else
		join_stack(j, h, ev, size, &named);
}

/* Each record: a length (1 byte, times 8), then its bytes; the map's records are 8-aligned, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t room[256], n = 0, seen = 0;
	struct family_host h;
	struct join j;

	fakes_reset(&h);
	if (len)
		fake.symbols = data[0] & 1;
	join_init(&j, NULL);
	for (size_t at = 1; at < len;) {
		size_t size = (size_t)data[at] * 8;

		at++;
		size = size < len - at ? size : len - at;
		memcpy(room, data + at, size);
		at += size;
		if (record_value(room, size, &n))
			continue;
		seen += n;
		take(&j, &h, (const struct stack_event *)room, size);
	}
	join_finish(&j, &h);
	if (j.waiting.n || h.added + h.refused > seen)
		abort();
	join_release(&j);
	return 0;
}
