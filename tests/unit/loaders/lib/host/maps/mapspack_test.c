/* SPDX-License-Identifier: Apache-2.0 */
/* mapspack: packed packets unpack to the same; damaged ones are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/mapspack.h"
#include "schema/base/strbuf.h"
#include "tests/unit/test.h"

TEST(messages_of_one_packet_come_out_as_they_went_in)
{
	struct mp_process p = {.tgid = 7, .start_ns = 8, .exec_id = 9};
	struct mp_map m = {.start = 1, .end = 2, .image = 3};
	const char *str[] = {"comm", "/exe", "", "/cgroup"};
	struct strbuf b = STRBUF_INIT;
	struct mapspack_msg msg;
	size_t pos = 0;

	mapspack_add(&b, MP_PROCESS, &p, str);
	mapspack_add(&b, MP_MAP, &m, NULL);
	assert_int_equal(b.len % 8, 0);
	assert_int_equal(mapspack_next(b.buf, b.len, &pos, &msg), 1);
	assert_int_equal(msg.type, MP_PROCESS);
	assert_int_equal(msg.m.process.tgid, 7);
	assert_string_equal(msg.str[0], "comm");
	assert_string_equal(msg.str[2], "");
	assert_string_equal(msg.str[3], "/cgroup");
	assert_int_equal(mapspack_next(b.buf, b.len, &pos, &msg), 1);
	assert_int_equal(msg.m.map.image, 3);
	assert_int_equal(mapspack_next(b.buf, b.len, &pos, &msg), 0);
	strbuf_release(&b);
}

TEST(a_string_too_long_is_cut_to_fit_a_packet)
{
	struct mp_image m = {.id = 1};
	char *s = malloc(100001);
	const char *str[] = {s};
	struct strbuf b = STRBUF_INIT;
	struct mapspack_msg msg;
	size_t pos = 0;

	memset(s, 'x', 100000);
	s[100000] = 0;
	mapspack_add(&b, MP_IMAGE, &m, str);
	assert_true(b.len < MP_PACKET_MAX / 4);
	assert_int_equal(mapspack_next(b.buf, b.len, &pos, &msg), 1);
	assert_int_equal(strlen(msg.str[0]), 16000);
	strbuf_release(&b);
	free(s);
}

TEST(lengths_that_lie_are_refused)
{
	struct mp_index m = {.id = 1};
	const char *str[] = {"key", "reason"};
	struct strbuf b = STRBUF_INIT;
	struct mapspack_msg msg = {.type = 99};

	mapspack_add(&b, MP_INDEX, &m, str);
	for (size_t at = 0; at < sizeof(m); at += 4) {
		uint32_t lies[] = {0xffffffff, 0x7ffffff8, 7, 64};

		for (size_t i = 0; i < 4; i++) {
			char copy[256];
			size_t pos = 0;
			int rc;

			memcpy(copy, b.buf, b.len);
			memcpy(copy + at, &lies[i], 4);
			rc = mapspack_next(copy, b.len, &pos, &msg);
			if (at == 4 || at >= offsetof(struct mp_index, len))
				assert_int_equal(rc, -EBADMSG);
		}
	}
	for (size_t n = 1; n < b.len; n++) {
		size_t pos = 0;

		assert_int_equal(mapspack_next(b.buf, n, &pos, &msg), -EBADMSG);
	}
	strbuf_release(&b);
}
