/* SPDX-License-Identifier: Apache-2.0 */
/* address: the forms in which people write addresses, and which of them other hosts can reach. */
#include <string.h>

#include "schema/base/array.h"
#include "serve/address.h"
#include "tests/unit/test.h"

TEST(addresses_are_read)
{
	static const struct {
		const char *text, *shown;
		bool loopback;
	} good[] = {
		{"127.0.0.1:7766", "http://127.0.0.1:7766/", true},
		{"localhost:80", "http://127.0.0.1:80/", true},
		{":0", "http://127.0.0.1:0/", true},
		{"127.9.9.9:1", "http://127.9.9.9:1/", true},
		{"[::1]:7766", "http://[::1]:7766/", true},
		{"0.0.0.0:7766", "http://0.0.0.0:7766/", false},
		{"[::]:7766", "http://[::]:7766/", false},
		{"192.168.1.5:65535", "http://192.168.1.5:65535/", false},
		{"[::ffff:127.0.0.1]:1", "http://[::ffff:127.0.0.1]:1/", false},
		{"unix:/run/x.sock", "unix:/run/x.sock", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct address a;
		struct err e = {0};

		assert_int_equal(address_parse(good[i].text, &a, &e), 0);
		assert_string_equal(a.shown, good[i].shown);
		assert_int_equal(a.loopback, good[i].loopback);
	}
}

TEST(anything_else_is_refused_with_what_is_understood)
{
	static const char *const bad[] = {"",
					  ":",
					  "7766",
					  "127.0.0.1",
					  "127.0.0.1:",
					  "127.0.0.1:65536",
					  "127.0.0.1:-1",
					  "127.0.0.1:80x",
					  "example.org:80",
					  "::1:80",
					  "[::1]",
					  "[::1",
					  "[127.0.0.1]:80",
					  "127.1:80",
					  "unix:",
					  "256.1.1.1:1",
					  "1.2.3.4 :1",
					  "\xff:1"};
	char long_path[200] = "unix:";

	memset(long_path + 5, 'x', 150);
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		const char *text = i < ARRAY_SIZE(bad) ? bad[i] : long_path;
		struct address a;
		struct err e = {0};

		if (!address_parse(text, &a, &e))
			fail_msg("'%s' was read", text);
		assert_int_equal(e.exit, EXIT_USAGE);
		assert_non_null(strstr(e.fix, "--listen"));
	}
}
