/* SPDX-License-Identifier: Apache-2.0 */
/* How engines write lines, as they have written them. */
#include <string.h>

#include "loaders/logs/forms.h"
#include "tests/unit/test.h"

static struct forms f;

static bool line(enum log_form form, const char *s, struct log_record *r)
{
	return forms_line(&f, form, s, strlen(s), r);
}

TEST(docker_writes_json)
{
	struct log_record r;

	assert_true(line(
		LOG_DOCKER,
		"{\"log\":\"a \\\"b\\\" \\u00e9\\ud83d\\ude00\\t\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-29T18:00:00.5Z\"}",
		&r));
	assert_int_equal(r.len, strlen("a \"b\" \xc3\xa9\xf0\x9f\x98\x80\t"));
	assert_memory_equal(r.text, "a \"b\" \xc3\xa9\xf0\x9f\x98\x80\t", r.len);
	assert_false(r.piece);
	assert_true(r.err);
	assert_true(r.utc_ns == 1795975200500000000ll);
	assert_true(line(
		LOG_DOCKER,
		"{\"log\":\"begin\",\"stream\":\"stdout\",\"time\":\"2026-11-29T18:00:00Z\"}", &r));
	assert_true(r.piece);
	assert_true(line(LOG_DOCKER, "{\"log\":\"a\\\\n\",\"stream\":\"stdout\"}", &r));
	assert_true(r.piece); /* a backslash and an n, no line end */
	assert_true(line(
		LOG_DOCKER,
		"{\"log\":\"\\n\",\"stream\":\"stdout\",\"attrs\":{\"a\":\"}\"},\"time\":\"x\"}",
		&r));
	assert_int_equal(r.len, 0);
	assert_false(r.piece);
	assert_false(line(LOG_DOCKER, "{\"stream\":\"stdout\"}", &r));
	assert_false(line(LOG_DOCKER, "{\"log\":\"a", &r));
	assert_false(line(LOG_DOCKER, "", &r));
}

TEST(cri_writes_words)
{
	struct log_record r;

	assert_true(line(LOG_CRI, "2026-11-29T19:00:00.250000000+01:00 stderr F text of it", &r));
	assert_true(r.err && !r.piece && r.len == 10 && r.utc_ns == 1795975200250000000ll);
	assert_true(line(LOG_CRI, "2026-11-29T18:00:00Z stdout P begin", &r));
	assert_true(r.piece && !r.err);
	assert_true(line(LOG_CRI, "2026-11-29T18:00:00Z stdout F", &r));
	assert_int_equal(r.len, 0);
	assert_false(line(LOG_CRI, "2026-11-29T18:00:00Z stdlog F x", &r));
	assert_false(line(LOG_CRI, "yesterday stdout F x", &r));
}

/* As Docker's driver `local` writes: stderr, a time, "hello". */
TEST(dockers_local_driver_writes_messages)
{
	uint8_t b[64] = {0, 0, 0, 26, 0x0a, 6, 's', 't', 'd', 'e', 'r', 'r', 0x10};
	uint64_t ns = 1795975200500000000ull;
	struct log_record r;
	size_t n = 13;

	for (; ns >= 128; ns >>= 7)
		b[n++] = (uint8_t)(ns | 128);
	b[n++] = (uint8_t)ns;
	b[n++] = 0x1a;
	b[n++] = 5;
	memcpy(b + n, "hello", 5);
	n += 5;
	b[3] = (uint8_t)(n - 4);
	memcpy(b + n, b, 4);
	n += 4;
	assert_int_equal(forms_local(b, n, &r), n);
	assert_true(r.err && !r.piece && r.len == 5 && !memcmp(r.text, "hello", 5));
	assert_true(r.utc_ns == 1795975200500000000ll);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(forms_local(b, cut, &r), 0);
	b[n - 1] ^= 1;
	assert_int_equal(forms_local(b, n, &r), -1);
	b[0] = 0x7f;
	assert_int_equal(forms_local(b, n, &r), -1);
}
