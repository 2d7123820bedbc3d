/* SPDX-License-Identifier: Apache-2.0 */
/* What sonde-pprof says, also where its child was taken over. */
#include <string.h>

#include "loaders/scrape/fetch.h"
#include "tests/unit/test.h"

struct message {
	struct wire_head head;
	uint64_t rest[64];
};

static struct fetch begin(void)
{
	return (struct fetch){.fd = -1, .connection = -1, .exe = {0x401000, 0x500000, 0x1000}};
}

TEST(stacks_come_many_in_a_message)
{
	struct message m = {{WIRE_STACKS, 2}, {1, 10, 20, 0, 0, 0xaa, 2, 30, 40, 0, 0, 0xbb, 0xcc}};
	struct fetch f = begin();

	assert_true(fetch_take(&f, &m, sizeof(m.head) + 13 * 8));
	assert_true(f.n == 2 && f.n_frames == 3 && f.stacks[1].values[1] == 40 &&
		    f.frames[f.stacks[1].frames] == 0xbb);
	for (size_t len = 0; len < sizeof(m.head) + 13 * 8; len++) /* a shorter one is incomplete */
		assert_false(fetch_take(&f, &m, len));
	m.rest[0] = UINT64_MAX;
	assert_false(fetch_take(&f, &m, sizeof(m.head) + 13 * 8));
	fetch_release(&f);
}

TEST(the_programs_own_mapping_is_looked_for)
{
	struct message m = {{WIRE_MAPPINGS, 1}, {0x400000, 0x600000, 0}};
	struct fetch f = begin();

	assert_true(fetch_take(&f, &m, sizeof(m.head) + 24) && f.has_mapping);
	f = begin();
	m.rest[2] = 0x1000;
	assert_true(fetch_take(&f, &m, sizeof(m.head) + 24) && !f.has_mapping);
	m.head.n = 1u << 31;
	assert_false(fetch_take(&f, &m, sizeof(m.head) + 24));
}

TEST(an_end_or_a_reason_is_the_last)
{
	struct message end = {{WIRE_END, 1}, {5, 6}},
		       failed = {{WIRE_FAILED, 1}, {(uint64_t)404 << 32 | WIRE_STATUS}},
		       other = {{99, 0}, {0}};
	struct fetch f = begin();

	assert_true(fetch_take(&f, &end, sizeof(end.head) + sizeof(struct wire_end)));
	assert_true(f.state == FETCH_DONE && f.end.duration_ns == 5 && f.end.left_out == 6);
	f = begin();
	assert_true(fetch_take(&f, &failed, sizeof(failed.head) + sizeof(struct wire_failed)));
	assert_true(f.state == FETCH_FAILED && f.failed.why == WIRE_STATUS &&
		    f.failed.detail == 404);
	assert_false(fetch_take(&f, &other, sizeof(other.head)));
	assert_false(fetch_take(&f, &other, 3));
}
