/* SPDX-License-Identifier: Apache-2.0 */
/* dubbo: messages as in the Dubbo2 protocol specification. */
#include "tests/unit/loaders/lib/protocols/talk.h"

TEST(a_call_has_its_service_and_method)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00X\x05"
		  "2.0.20.org.example.very"
		  ".long.package.name.DemoService\x05"
		  "0.0.0\x08say"
		  "Hello\x12Ljava/lang/String;"
		  "\xda\xbb\xe2\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01N"
		  "\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00X\x05"
		  "2.0.20.org.example.very"
		  ".long.package.name.DemoService\x05"
		  "0.0.0\x08say"
		  "Hello\x12Ljava/lang/String;"),
		S("\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x01\x91"
		  "\xda\xbb\"\x14\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01N"
		  "\xda\xbb\x02(\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01x"),
		C("\xda\xbb\x82\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00X\x05"
		  "2.0.20.org.example.very"
		  ".long.package.name.DemoService\x05"
		  "0.0.0\x08say"
		  "Hello\x12Ljava/lang/String;"),
		END};

	talk_expect(turns, "dubbo",
		    "org.example.very.long.package.name.DemoService/sayHello ok\n"
		    "org.example.very.long.package.name.DemoService/sayHello error 40\n"
		    "org.example.very.long.package.name.DemoService/sayHello one-way\n");
}

/* SERVER_TIMEOUT 31, SERVICE_NOT_FOUND 60, SERVICE_ERROR 70, SERVER_THREADPOOL_EXHAUSTED_ERROR 100
 */
TEST(each_status_of_an_error_is_told)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"
		  "\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"
		  "\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"
		  "\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"),
		S("\xda\xbb\x02\x1f\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x01x"
		  "\xda\xbb\x02<\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02\x01x"
		  "\xda\xbb\x02"
		  "F\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00"
		  "\xda\xbb\x02"
		  "d\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x02\x01x"),
		END};

	talk_expect(turns, "dubbo",
		    "a.B/m error 31\n"
		    "a.B/m error 60\n"
		    "a.B/m error 70\n"
		    "a.B/m error 100\n");
}

TEST(heartbeats_of_either_side_are_no_requests)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xe2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01N"),
		S("\xda\xbb\x22\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01N"
		  "\xda\xbb\xe2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01N"),
		C("\xda\xbb\x22\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01N"), END};

	talk_expect(turns, "dubbo", "");
}

/* 6 is fastjson, 22 is protobuf. The bytes of the second body would also be names in Hessian 2. */
TEST(of_another_serialization_only_the_answer_is_known)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xc6\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0e\"2.0.2\"\n\"a.B\"\n"
		  "\xda\xbb\xd6\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x12\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m"),
		S("\xda\xbb\x16P\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00"
		  "\xda\xbb\x06\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x31"),
		END};

	talk_expect(turns, "dubbo",
		    "REQUEST error 80\n"
		    "REQUEST ok\n");
}

TEST(without_payload_no_name_is_read)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"),
		S("\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x94"), END};

	talk_expect_of(turns, "dubbo", "REQUEST ok\n", true, false, 0, PROTO_NONE);
}

/* In the first call the method extends beyond the body, in the second one the service does. */
TEST(a_name_that_the_body_does_not_hold_is_none)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x13\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x1fsa"
		  "\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x0b\x05"
		  "2.0.2\x33\xff"
		  "a.B"),
		S("\xda\xbb\x02\x28\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"
		  "\xda\xbb\x02\x28\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00"),
		END};

	talk_expect(turns, "dubbo",
		    "a.B/? error 40\n"
		    "REQUEST error 40\n");
}

/* The connection is seen from its middle on: the first answer is to a call that was not seen. */
TEST(an_answer_to_a_call_before_is_none_and_an_open_call_has_no_answer)
{
	static const struct turn turns[] = {
		S("\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x01\x94"),
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"),
		S("\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x01\x94"),
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01n\x12Ljava/lang/String;"),
		END};

	talk_expect_of(turns, "dubbo",
		       "a.B/m ok\n"
		       "a.B/n no-answer\n",
		       false, false, 0, PROTO_MASKED);
}

/* 549 bytes of body: names are looked for in the first 512 bytes of the message. */
TEST(a_large_body_is_passed_over_to_its_end)
{
	static const struct turn turns[] = {
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x02%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01m\x12Ljava/lang/String;"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		  "\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00%\x05"
		  "2.0.2\x03"
		  "a.B\x05"
		  "0.0.0\x01n\x12Ljava/lang/String;"),
		S("\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x94"
		  "\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x94"),
		END};

	talk_expect(turns, "dubbo",
		    "a.B/m ok\n"
		    "a.B/n ok\n");
}

/* Serialization 0; more than 64 MiB; a response from the client. */
TEST(what_no_client_of_dubbo_begins_with_is_none)
{
	static const struct turn no_serialization[] = {
		C("\xda\xbb\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"),
		S("\xda\xbb\x00\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"), END};
	static const struct turn too_large[] = {
		C("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x04\x00\x00\x01"), S("x"), END};
	static const struct turn answers[] = {
		C("\xda\xbb\x02\x14\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"),
		S("\xda\xbb\xc2\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"), END};

	talk_expect_nothing(no_serialization);
	talk_expect_nothing(too_large);
	talk_expect_nothing(answers);
}
