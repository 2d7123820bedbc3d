/* SPDX-License-Identifier: Apache-2.0 */
/* dns: messages as in RFC 1035, EDNS as in RFC 6891. */
#include "tests/unit/loaders/lib/protocols/talk.h"

/* clang-format off */

TEST(answers_are_found_by_number_and_name)
{
	static const struct turn turns[] = {
		C("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03WWW\x07" "example\x02" "co\x02uk\x00\x00\x01\x00\x01"),
		C("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x03www\x07" "example\x03" "com\x00\x00\x1c\x00\x01\x00\x00)\x10\x00\x00\x00"
		  "\x00\x00\x00\x00"),
		S("\x00\x01\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07" "example\x03" "com\x00\x00\x1c\x00\x01"),
		S("\x00\x01\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07" "example\x02" "co\x02uk\x00\x00\x01\x00\x01"),
		C("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x01" "b\x07" "example\x03org\x00\x00\x0f\x00\x01"),
		S("\x00\x07\x81\x82\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x01" "b\x07" "example\x03org\x00\x00\x0f\x00\x01"),
		C("\x00\x09\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x00\x00\x01\x00\x01"),
		END};

	talk_expect_of(turns, "dns", "AAAA example.com ok NOERROR\n"
		    "A example.co.uk ok NXDOMAIN\n"
		    "MX example.org error SERVFAIL\n"
		    "A x no-answer\n", true, true, 53, PROTO_MASKED);
}

TEST(over_tcp_each_message_has_its_length)
{
	static const struct turn turns[] = {
		C("\x00\x1f\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x07" "example\x03" "com\x00\x00\x01\x00\x01\x00\x1f\x00\x02\x01\x00\x00"
		  "\x01\x00\x00\x00\x00\x00\x00\x01" "b\x07" "example\x03net\x00\x00\x01\x00\x01"),
		S("\x00\x1f\x00\x02\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00\x01" "b\x07" "example\x03net\x00\x00\x01\x00\x01\x00\x1f\x00\x01\x81\x85\x00"
		  "\x01\x00\x00\x00\x00\x00\x00\x01" "a\x07" "example\x03" "com\x00\x00\x01\x00\x01"),
		END};

	talk_expect(turns, "dns", "A example.net ok NOERROR\n"
		    "A example.com error REFUSED\n");
}

static void expect_multicast(const char *message, size_t n, const char *told)
{
	const struct turn turns[] = {{'c', message, n}, END};

	talk_expect_of(turns, "dns", told, true, true, 5353, PROTO_MASKED);
}

TEST(multicast_questions_are_one_way_and_a_service_keeps_its_name)
{
#define ASKED(name_, told_)                                                                                   \
	expect_multicast("\0\0\0\0\0\1\0\0\0\0\0\0" name_ "\0\0\x0c\0\1",                                    \
			 sizeof("\0\0\0\0\0\1\0\0\0\0\0\0" name_ "\0\0\x0c\0\1") - 1, "PTR " told_ " one-way\n")
	ASKED("\5_http\4_tcp\5local", "_http._tcp.local");
	ASKED("\3Tom\4_ipp\4_udp\5local", "_ipp._udp.local");
	ASKED("\5_ldap\4_tcp\7example\3com", "example.com");
	ASKED("\4_tcp\5local", "_tcp.local");
}

static void name_take(void *ctx, const struct proto_named *x)
{
	char *text = ctx, address[64];

	for (size_t i = 0; i < x->len; i++)
		snprintf(address + 2 * i, sizeof(address) - 2 * i, "%02x", x->address[i]);
	sprintf(text + strlen(text), "%s %s\n", x->name, address);
}

static void expect_names(enum proto_payload payload, const char *ask, size_t n_ask, const char *answer, size_t n_answer, const char *expected)
{
	char heard[512] = "";
	struct protocols *of = protocols_new(&(struct proto_opts){.payload = payload, .named = name_take, .ctx = heard});
	struct proto_conn *c = proto_conn_new(of, true, true, 53, NULL);

	proto_conn_feed(c, &(struct proto_piece){.from = PROTO_CLIENT, .at_ns = 1, .bytes = (const uint8_t *)ask, .len = n_ask, .size = n_ask});
	proto_conn_feed(c, &(struct proto_piece){.from = PROTO_SERVER, .at_ns = 2, .bytes = (const uint8_t *)answer, .len = n_answer, .size = n_answer});
	assert_string_equal(heard, expected);
	proto_conn_free(c);
	protocols_free(of);
}

#define ASK_A "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07" "example\x03" "com\x00\x00\x01\x00\x01"
/* an alias, then two addresses of that */
#define ANSWER_A "\x00\x01\x81\x80\x00\x01\x00\x03\x00\x00\x00\x00\x03www\x07" "example\x03" "com\x00\x00\x01\x00\x01" \
	"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x06\x03" "cdn\xc0\x10" \
	"\xc0\x2d\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x01\x02\x03" \
	"\xc0\x2d\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x01\x02\x04"
#define ASK_AAAA "\x00\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x00\x00\x1c\x00\x01"
#define ANSWER_AAAA "\x00\x02\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x01" "a\x00\x00\x1c\x00\x01" \
	"\xc0\x0c\x00\x1c\x00\x01\x00\x00\x00\x3c\x00\x10\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"

TEST(addresses_are_those_of_the_name_that_was_asked_for)
{
	expect_names(PROTO_MASKED, ASK_A, sizeof(ASK_A) - 1, ANSWER_A, sizeof(ANSWER_A) - 1, "www.example.com 0a010203\nwww.example.com 0a010204\n");
	expect_names(PROTO_MASKED, ASK_AAAA, sizeof(ASK_AAAA) - 1, ANSWER_AAAA, sizeof(ANSWER_AAAA) - 1, "a fd000000000000000000000000000001\n");
	expect_names(PROTO_NONE, ASK_A, sizeof(ASK_A) - 1, ANSWER_A, sizeof(ANSWER_A) - 1, "");
}

TEST(an_answer_that_is_cut_has_the_addresses_that_are_whole)
{
	size_t whole = sizeof(ANSWER_A) - 1;

	for (size_t n = 33; n < whole; n++)
		expect_names(PROTO_MASKED, ASK_A, sizeof(ASK_A) - 1, ANSWER_A, n, n < whole - 16 ? "" : "www.example.com 0a010203\n");
}

/* clang-format on */
