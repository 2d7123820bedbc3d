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
