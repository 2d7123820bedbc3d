/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of messages and their patterns, and what is never stored. */
#include <stdio.h>
#include <string.h>

#include "loaders/logs/counts.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

#define T0 (1795975200ll * NSEC_PER_SEC)

static struct counts_rules rules(void)
{
	return (struct counts_rules){.bucket_s = 10, .text = true};
}

static void say(struct counts *c, struct counts_rules *r, const char *s, int64_t utc_ns)
{
	const struct message m = {.text = s,
				  .len = strlen(s),
				  .head = strcspn(s, "\n"),
				  .lines = 1,
				  .bytes = strlen(s),
				  .utc_ns = utc_ns,
				  .level = -1};

	counts_message(c, r, &m, utc_ns);
}

static uint64_t messages(const struct counts *c, enum line_level level)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n_sums; i++)
		n += c->sums[i].level == level ? c->sums[i].messages : 0;
	return n;
}

static uint64_t hits(const struct counts *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n_hits; i++)
		n += c->hits[i].messages;
	return n;
}

TEST(all_messages_count_and_errors_have_patterns_that_add_up)
{
	struct counts_rules r = rules();
	struct counts c = {0};
	char s[128];

	for (int i = 0; i < 1000; i++) {
		snprintf(s, sizeof(s), "ERROR cannot reach 10.0.0.%d: refused", i);
		say(&c, &r, s, T0 + i * NSEC_PER_SEC / 100);
		say(&c, &r, "INFO fine", T0);
	}
	assert_int_equal(messages(&c, LEVEL_ERROR), 1000);
	assert_int_equal(messages(&c, LEVEL_INFO), 1000);
	assert_int_equal(hits(&c), 1000);
	assert_int_equal(c.n_patterns, 2); /* other, and this one */
	assert_string_equal(c.patterns[1].text, "cannot reach * refused");
	counts_release(&c, &r);
	assert_int_equal(r.patterns, 0);
}

/* Words of which no two have more in common than the level. */
TEST(more_patterns_than_there_is_room_for_are_other_and_the_sums_hold)
{
	struct counts_rules r = rules();
	struct counts c = {0};
	char s[64];

	for (int i = 0; i < 3000; i++) {
		char a = (char)('a' + i % 26), b = (char)('a' + i / 26 % 26),
		     d = (char)('g' + i / 676);

		snprintf(s, sizeof(s), "ERROR %c%c%cx %c%c%cy", a, b, d, b, a, d);
		say(&c, &r, s, T0 + i * NSEC_PER_SEC);
	}
	assert_int_equal(c.n_patterns, COUNTS_PATTERNS);
	assert_int_equal(hits(&c), 3000);
	assert_int_equal(messages(&c, LEVEL_ERROR), 3000);
	counts_release(&c, &r);
}

TEST(secrets_are_in_no_pattern_and_no_sample)
{
	static const char *const lines[] = {
		"ERROR login failed password=correcthorse for bob",
		"ERROR cannot connect to postgres://app:correcthorse@db/x",
		"ERROR Authorization: Bearer correcthorsebatterystaple refused",
		"ERROR {\"password\": \"correcthorse\"} is wrong",
		"{\"level\":\"error\",\"msg\":\"token=correcthorse expired\",\"api_key\":\"correcthorse\"}",
		"ERROR boom\n  env DB_PASSWORD=correcthorse\n  more",
	};
	struct counts_rules r = rules();
	struct counts c = {0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		say(&c, &r, lines[i], T0);
	assert_true(c.n_patterns > 3);
	for (uint32_t i = 1; i < c.n_patterns; i++) {
		assert_null(strstr(c.patterns[i].text, "correcthorse"));
		assert_non_null(c.patterns[i].sample);
		assert_null(strstr(c.patterns[i].sample, "correcthorse"));
	}
	counts_release(&c, &r);
}

TEST(without_text_there_are_counts_alone)
{
	struct counts_rules r = rules();
	struct counts c = {0};

	r.text = false;
	say(&c, &r, "ERROR boom", T0);
	assert_int_equal(messages(&c, LEVEL_ERROR), 1);
	assert_int_equal(c.n_patterns, 0);
	assert_int_equal(c.n_hits, 0);
	counts_release(&c, &r);
}

TEST(in_a_burst_other_levels_have_patterns_too)
{
	struct counts_rules r = rules();
	struct counts c = {0};
	int64_t t = T0;

	for (int i = 0; i < 300; i++, t += NSEC_PER_SEC)
		say(&c, &r, "INFO job done", t);
	assert_int_equal(hits(&c), 0);
	counts_clear(&c);
	for (int i = 0; i < 5000; i++)
		say(&c, &r, "INFO retry of job", t + i * NSEC_PER_SEC / 1000);
	assert_int_equal(messages(&c, LEVEL_INFO), 5000);
	assert_true(hits(&c) > 4000);
	assert_true(c.sums[c.n_sums - 1].burst);
	counts_release(&c, &r);
}

/* What people log by mistake: of none of these lines the mark may be stored, in a pattern or in a
 * sample, as an error or in a burst, as text or inside of JSON. */
static const char *const PLANTED[] = {
	"ERROR token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJxUjdNYXJrIn0.qR7MarkSflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
	"ERROR Authorization: Bearer qR7MarkAbCdEf0123456789",
	"ERROR request failed, headers: {Authorization=[Basic dXNlcjpxUjdNYXJrcQqR7Mark==], Accept=[*/*]}",
	"ERROR headers={'authorization': 'Token qR7Mark0123456789abcdef'}",
	"ERROR aws key AKIAqR7MARK7EXAMPLE1 secret qR7Mark/K7MDENG/bPxRfiCYEXAMPLEKEY0000000",
	"ERROR AWS_SECRET_ACCESS_KEY=qR7Mark/K7MDENG+bPxRfiCYEXAMPLEKEY",
	"ERROR cannot connect to postgres://shop:qR7Mark@db:5432/shop",
	"ERROR GET https://shop:qR7Mark@example.com/x?y=1 failed",
	"ERROR redis://:qR7Mark@cache:6379/0 refused",
	"ERROR callback https://example.com/cb?code=1&access_token=qR7Mark123&x=2",
	"ERROR {\"user\":\"a\",\"password\":\"qR7Mark\",\"n\":1}",
	"{\"level\":\"error\",\"msg\":\"login failed\",\"password\":\"qR7Mark\"}",
	"{\"level\":\"error\",\"msg\":\"login failed: {\\\"password\\\":\\\"qR7Mark\\\"}\"}",
	"{\"level\":\"error\",\"msg\":\"Authorization: Bearer qR7Mark0123456789\",\"err\":\"x\"}",
	"{\"level\":\"error\",\"err\":\"dial postgres://u:qR7Mark@h/d: refused\"}",
	"{\"level\":\"error\",\"msg\":\"x\",\"api_key\":\"qR7Mark\",\"client_secret\":\"qR7Mark\"}",
	"level=error msg=\"login\" password=qR7Mark user=a",
	"ERROR passwd: qR7Mark, retry",
	"ERROR Cookie: session=qR7Mark0123456789; theme=dark",
	"ERROR Set-Cookie: sid=qR7Mark0123456789; Path=/; HttpOnly",
	"ERROR X-Api-Key: qR7Mark0123456789",
	"ERROR key -----BEGIN PRIVATE KEY-----\\nMIIqR7MarkIBADANBgkqhkiG9w0BAQEFAASC\\n-----END PRIVATE KEY-----",
	"ERROR bad key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIqR7MarkIBADANBgkqhkiG9w0BAQEFAASC\nqR7MarkBAADANBgkqhkiG9w0BAQE=\n-----END RSA PRIVATE KEY-----\nafter",
	"ERROR token ghp_qR7MarkAbCdEfGhIjKlMnOpQrStUvWxYz01 is refused",
	"ERROR slack https://hooks.slack.com/services/T00000000/B00000000/qR7MarkXXXXXXXXXXXXXXXXX",
	"ERROR bot https://api.telegram.org/bot123456:qR7MarkAAHdqTcvCH1vGWJxfSeofSAs0K5/send",
	"ERROR stripe sk_live_qR7Mark51H8xyzABCDEFGHIJ declined",
	"ERROR ALTER USER shop PASSWORD 'qR7Mark'",
	"ERROR SMTP AUTH PLAIN failed for smtp://u:qR7Mark@mail:587",
	"ERROR cmd: mysql -uroot -pqR7Mark shop",
	"ERROR client_secret => \"qR7Mark\"",
	"ERROR MONGO_URL is mongodb+srv://u:qR7Mark@c.example.net/d",
	"MIIqR7MarkIBADANBgkqhkiG9w0BAQEFAASCqR7MarkBAADANBgkqhkiG9w0BAQE", /* of a key, alone */
	"-----BEGIN PRIVATE KEY-----",
	"ERROR pin card 4111 1111 1111 1111 declined",
	"ERROR card 4111111111111111 declined",
	"ERROR card=4111-1111-1111-1111 declined",
	"{\"level\":\"error\",\"msg\":\"declined\",\"card\":\"4111111111111111\"}",
};
static const char *const MARKS[] = {"qR7Mark", "qR7MARK", "4111 1111", "411111111", "4111-1111"};

static int bad;
static void assert_unmarked(const char *text, const char *line)
{
	for (size_t i = 0; text && i < sizeof(MARKS) / sizeof(*MARKS); i++)
		if (strstr(text, MARKS[i])) {
			fprintf(stderr, "of: %s\nstored: %s\n", line, text);
			bad++;
		}
}

TEST(no_secret_that_is_logged_is_in_a_pattern_or_in_a_sample)
{
	for (size_t i = 0; i < sizeof(PLANTED) / sizeof(*PLANTED); i++)
		for (int burst = 0; burst < 2; burst++) {
			struct counts_rules r = rules();
			struct counts c = {.bursts = burst, .second = T0 / NSEC_PER_SEC};
			const char *line = PLANTED[i];

			if (burst && !strncmp(line, "ERROR ", 6))
				line += 6;
			say(&c, &r, line, T0);
			assert_true(c.n_patterns == 2 || burst || strncmp(line, "ERROR ", 6) != 0);
			for (uint32_t k = 0; k < c.n_patterns; k++) {
				assert_unmarked(c.patterns[k].text, line);
				assert_unmarked(c.patterns[k].sample, line);
			}
			counts_release(&c, &r);
		}
	assert_int_equal(bad, 0);
}
