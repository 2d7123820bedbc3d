/* SPDX-License-Identifier: Apache-2.0 */
/* mqtt: packets as in the OASIS standards of MQTT 3.1.1 and 5. */
#include "tests/unit/loaders/lib/protocols/talk.h"

static void quality_says_what_is_answered(void **state)
{
	static const struct turn turns[] = {C("\x10\x0e\x00\x04MQTT\x04\x02\x00<\x00\x02id"),
					    S(" \x02\x00\x00"),
					    C("\x82\x0b\x00\x01\x00\x06home/#\x01"),
					    S("\x90\x03\x00\x01\x01"),
					    C("0\x0f\x00\x0bhome/7/temp21"
					      "2\x10\x00\x0bhome/7/temp\x00\x02x"),
					    S("@\x02\x00\x02"),
					    S("0\xd5\x01\x00\x0bhome/7/tempyyyyyyyyyyyyyyyyyyyyyyyy"
					      "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
					      "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
					      "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
					      "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
					      "yyyyyyyyyyyyyyyy"),
					    C("4\x06\x00\x01"
					      "a\x00\x03x"),
					    S("P\x02\x00\x03"),
					    C("b\x02\x00\x03"),
					    S("p\x02\x00\x03"),
					    C("\xc0\x00"),
					    S("\xd0\x00"),
					    C("\xe0\x00"),
					    END};

	(void)state;
	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "SUBSCRIBE home/* ok\n"
		    "PUBLISH home/{id}/temp one-way\n"
		    "PUBLISH home/{id}/temp ok\n"
		    "DELIVER home/{id}/temp one-way\n"
		    "PUBLISH a ok\n"
		    "PING ok\n");
}

static void version_5_has_numbers_for_topics_and_reasons(void **state)
{
	static const struct turn turns[] = {C("\x10\x0f\x00\x04MQTT\x05\x02\x00<\x00\x00\x02id"),
					    S(" \x03\x00\x00\x00"),
					    C("2\x13\x00\nlong/topic\x00\x01\x03#\x00\x05x"
					      "2\x09\x00\x00\x00\x02\x03#\x00\x05x"),
					    S("@\x03\x00\x01\x00"
					      "@\x03\x00\x02\x97"),
					    C("\x82\x07\x00\x03\x00\x00\x01x\x00"),
					    S("\x90\x04\x00\x03\x00\x87"),
					    END};

	(void)state;
	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "PUBLISH long/topic ok\n"
		    "PUBLISH long/topic error 151\n"
		    "SUBSCRIBE x error 135\n");
}

static void a_refused_login_is_an_error(void **state)
{
	static const struct turn turns[] = {C("\x10\x0e\x00\x04MQTT\x04\x02\x00<\x00\x02id"),
					    S(" \x02\x00\x05"), END};

	(void)state;
	talk_expect(turns, "mqtt", "CONNECT error 5\n");
}

static void one_filter_of_several_that_is_refused_is_an_error(void **state)
{
	static const struct turn turns[] = {C("\x10\r\x00\x04MQTT\x04\x02\x00<\x00\x01"
					      "a"),
					    S(" \x02\x00\x00"),
					    C("\x82\n\x00\x01\x00\x01"
					      "a\x00\x00\x01"
					      "b\x00"),
					    S("\x90\x04\x00\x01\x80\x01"),
					    C("\x82\n\x00\x02\x00\x01"
					      "a\x00\x00\x01"
					      "b\x00"),
					    S("\x90\x04\x00\x02\x00\x01"),
					    END};

	(void)state;
	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "SUBSCRIBE a error 128\n"
		    "SUBSCRIBE a ok\n");
}

static void a_server_that_disconnects_says_why(void **state)
{
	static const struct turn turns[] = {C("\x10\x0e\x00\x04MQTT\x05\x02\x00<\x00\x00\x01"
					      "a"),
					    S(" \x03\x00\x00\x00"),
					    C("\x82\x07\x00\x01\x00\x00\x01"
					      "a\x00"),
					    S("\x90\x07\x00\x01\x03\x1f\x00\x00\x87"),
					    C("2\x07\x00\x01t\x00\x02\x00x"),
					    S("\xe0\x02\x8b\x00"),
					    END};

	(void)state;
	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "SUBSCRIBE a error 135\n"
		    "PUBLISH t error 139\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quality_says_what_is_answered),
		cmocka_unit_test(version_5_has_numbers_for_topics_and_reasons),
		cmocka_unit_test(a_refused_login_is_an_error),
		cmocka_unit_test(one_filter_of_several_that_is_refused_is_an_error),
		cmocka_unit_test(a_server_that_disconnects_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
