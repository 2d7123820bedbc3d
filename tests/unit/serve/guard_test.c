/* SPDX-License-Identifier: Apache-2.0 */
/* guard: who may ask. */
#include <string.h>

#include "schema/base/array.h"
#include "serve/guard.h"
#include "tests/unit/test.h"

#define TOKEN "abcdefghij0123456789"

static const char *const HOSTS[] = {"sonde.example.org"};
static const struct guard OPEN = {.hosts = HOSTS, .n_hosts = 1, .own = "nas"};
static const struct guard CLOSED = {.own = "", .token = TOKEN};

TEST(only_names_that_nobody_else_can_own_are_answered)
{
	static const char *const good[] = {
		"127.0.0.1",  "127.0.0.1:7766", "localhost:1",       "LOCALHOST",
		"[::1]:7766", "[fe80::1]",      "10.0.0.7:80",       "nas",
		"NAS:80",     "nas.local",      "sonde.example.org", "Sonde.Example.Org:8443"};
	static const char *const bad[] = {"",
					  ":80",
					  "evil.example",
					  "localhost.evil.example",
					  "nas.evil.example",
					  "nasty",
					  "127.0.0.1.evil.example",
					  "[::1",
					  "[x]:1",
					  "127.0.0.1:80:80",
					  "127.0.0.1:",
					  "127.0.0.1:80/",
					  "localhost:80@evil",
					  "localhost.",
					  "0x7f.1",
					  "evil@127.0.0.1",
					  "127.0.0.1:123456"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (guard_ask(&OPEN, &(struct guard_head){.host = good[i]}, false, true) !=
		    GUARD_WELCOME)
			fail_msg("'%s' was refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (guard_ask(&OPEN, &(struct guard_head){.host = bad[i]}, true, true) !=
		    GUARD_HOST)
			fail_msg("'%s' was let in", bad[i]);
	assert_int_equal(guard_ask(&OPEN, &(struct guard_head){0}, true, true), GUARD_NO_HOST);
	assert_int_equal(guard_ask(&OPEN, &(struct guard_head){0}, true, false), GUARD_WELCOME);
}

static enum guard_answer from(const char *origin, const char *site, const char *mode, bool page)
{
	return guard_ask(
		&OPEN,
		&(struct guard_head){
			.host = "localhost:7766", .origin = origin, .site = site, .mode = mode},
		page, true);
}

TEST(a_page_of_another_site_may_link_here_and_nothing_else)
{
	assert_int_equal(from("http://localhost:7766", "same-origin", "cors", false),
			 GUARD_WELCOME);
	assert_int_equal(from("https://localhost:7766", NULL, NULL, false), GUARD_WELCOME);
	assert_int_equal(from(NULL, "none", "navigate", false), GUARD_WELCOME);
	assert_int_equal(from(NULL, "cross-site", "navigate", true), GUARD_WELCOME);
	assert_int_equal(from(NULL, "cross-site", "navigate", false), GUARD_ORIGIN);
	assert_int_equal(from(NULL, "cross-site", "no-cors", true), GUARD_ORIGIN);
	assert_int_equal(from(NULL, "same-site", "no-cors", false), GUARD_ORIGIN);
	assert_int_equal(from("http://localhost:8080", NULL, NULL, false), GUARD_ORIGIN);
	assert_int_equal(from("http://evil.example", NULL, NULL, true), GUARD_ORIGIN);
	assert_int_equal(from("null", NULL, NULL, false), GUARD_ORIGIN);
	assert_int_equal(from("file://", NULL, NULL, false), GUARD_ORIGIN);
}

static enum guard_answer with(const char *cookie, const char *authorization)
{
	return guard_ask(&CLOSED,
			 &(struct guard_head){.host = "localhost",
					      .cookie = cookie,
					      .authorization = authorization},
			 false, true);
}

TEST(the_token_is_asked_for_and_nothing_like_it_will_do)
{
	assert_int_equal(with("sonde=" TOKEN, NULL), GUARD_WELCOME);
	assert_int_equal(with("a=b; sonde=" TOKEN "; c=d", NULL), GUARD_WELCOME);
	assert_int_equal(with("sonde=old;sonde=" TOKEN, NULL), GUARD_WELCOME);
	assert_int_equal(with(NULL, "Bearer " TOKEN), GUARD_WELCOME);
	assert_int_equal(with(NULL, NULL), GUARD_TOKEN);
	assert_int_equal(with("", ""), GUARD_TOKEN);
	assert_int_equal(with("sonde=", "Bearer "), GUARD_TOKEN);
	assert_int_equal(with("sonde=" TOKEN "x", NULL), GUARD_TOKEN);
	assert_int_equal(with("xsonde=" TOKEN, NULL), GUARD_TOKEN);
	assert_int_equal(with("sonde=abcdefghij012345678", NULL), GUARD_TOKEN);
	assert_int_equal(with(NULL, "Basic " TOKEN), GUARD_TOKEN);
	assert_int_equal(with(NULL, "Bearer ABCDEFGHIJ0123456789"), GUARD_TOKEN);
	assert_int_equal(with(";;;= ;", NULL), GUARD_TOKEN);
}

TEST(a_token_is_long_and_plain)
{
	assert_true(guard_token_fits(TOKEN));
	assert_true(guard_token_fits("AAAA/+==-._~aaaa"));
	assert_false(guard_token_fits("short"));
	assert_false(guard_token_fits("sixteen letters; and more"));
	assert_false(guard_token_fits("abcdefghijklmnop\n"));
	assert_false(guard_token_fits(""));
}
