/* SPDX-License-Identifier: Apache-2.0 */
/* mqtt: packets as in the OASIS standards of MQTT 3.1.1 and 5. */
#include "tests/unit/loaders/lib/protocols/talk.h"
#include "tests/unit/test.h"

TEST(quality_says_what_is_answered)
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

	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "SUBSCRIBE home/* ok\n"
		    "PUBLISH home/{id}/temp one-way\n"
		    "PUBLISH home/{id}/temp ok\n"
		    "DELIVER home/{id}/temp one-way\n"
		    "PUBLISH a ok\n"
		    "PING ok\n");
}

TEST(version_5_has_numbers_for_topics_and_reasons)
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

	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "PUBLISH long/topic ok\n"
		    "PUBLISH long/topic error 151\n"
		    "SUBSCRIBE x error 135\n");
}

TEST(a_refused_login_is_an_error)
{
	static const struct turn turns[] = {C("\x10\x0e\x00\x04MQTT\x04\x02\x00<\x00\x02id"),
					    S(" \x02\x00\x05"), END};

	talk_expect(turns, "mqtt", "CONNECT error 5\n");
}

TEST(one_filter_of_several_that_is_refused_is_an_error)
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

	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "SUBSCRIBE a error 128\n"
		    "SUBSCRIBE a ok\n");
}

TEST(a_server_that_disconnects_says_why)
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

	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "SUBSCRIBE a error 135\n"
		    "PUBLISH t error 139\n");
}

TEST(an_auth_belongs_to_the_login_and_a_disconnect_says_why)
{
	static const struct turn turns[] = {
		C("\020\024\000\004MQTT\005\002\000<\006\025\000\003abc\000\001a"),
		S("\360\010\030\006\025\000\003abc"),
		C("\360\010\030\006\025\000\003abc"),
		S(" \003\000\000\000"),
		C("\360\002\031\000"),
		S("\360\002\000\000"),
		C("\340\002\202\000"),
		END};

	talk_expect(turns, "mqtt",
		    "CONNECT ok\n"
		    "AUTH ok\n"
		    "DISCONNECT error 130\n");
}
