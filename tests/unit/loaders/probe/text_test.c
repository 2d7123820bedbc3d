/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments as text. */
#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <sys/syscall.h>

#include "loaders/probe/text.h"
#include "schema/base/strbuf.h"
#include "tests/unit/test.h"

static struct probespec spec(const char *text)
{
	struct probespec s;
	struct err e = {0};

	assert_int_equal(probespec_parse(text, &s, &e), 0);
	assert_int_equal(probespec_bind(&s, &e), 0);
	return s;
}

TEST(arguments_are_a_json_object_with_texts_escaped_and_secrets_masked)
{
	struct probespec s = spec("syscall:x(path=str $1, n=int32 $2, b=bool $3, u=uint64 $4)");
	struct probe_event ev = {.value = {0, -5, 1, -1},
				 .n_text = 8,
				 .ret = -ENOENT,
				 .flags = PROBE_F_ENDS | PROBE_F_RETURNS};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	memcpy(ev.text, "a\"b\\\n\xff", 7);
	text_args(&s, &ev, &out);
	assert_string_equal(strbuf_str(&out),
			    "{\"path\":\"a\\\"b\\\\\\\\x0a\xef\xbf\xbd\",\"n\":-5,\"b\":true,"
			    "\"u\":18446744073709551615,\"ret\":-2,\"error\":\"ENOENT\"}");
	ev.missing = 1;
	ev.flags = 0;
	strbuf_reset(&out);
	text_args(&s, &ev, &out);
	assert_non_null(strstr(strbuf_str(&out), "{\"path\":null,"));
	assert_null(strstr(strbuf_str(&out), "ret"));
	ev.missing = 0;
	ev.n_text = (__u16)(1 + strlen(strcpy(ev.text, "password=hunter2")));
	strbuf_reset(&out);
	text_args(&s, &ev, &out);
	assert_null(strstr(strbuf_str(&out), "hunter2"));
}

TEST(a_text_that_is_not_within_the_record_is_null)
{
	struct probespec s = spec("syscall:x(path=str $1)");
	struct probe_event ev = {.value = {9999}, .n_text = 4};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	text_args(&s, &ev, &out);
	assert_string_equal(strbuf_str(&out), "{\"path\":null}");
}

TEST(a_sums_key_has_the_names_of_errors)
{
	struct probespec s = spec("syscall:openat(path=str $2) by path,ret");
	struct probe_key key = {.number = {0, -EACCES}, .text = "/etc"};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	text_key(&s, &key, &out);
	assert_string_equal(strbuf_str(&out), "/etc EACCES");
	key.number[1] = 0;
	strbuf_reset(&out);
	text_key(&s, &key, &out);
	assert_string_equal(strbuf_str(&out), "/etc ok");
}

TEST(a_probes_shape_lists_its_arguments)
{
	struct probespec s = spec("syscall:openat(path=str $2, flags=int32 $3)");
	struct strbuf out cleanup_strbuf = STRBUF_INIT;

	text_shape(&s, &out);
	assert_string_equal(strbuf_str(&out), "path str,flags int32,ret int64,ns uint64");
}
