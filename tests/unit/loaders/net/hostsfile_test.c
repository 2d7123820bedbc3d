/* SPDX-License-Identifier: Apache-2.0 */
/* hostsfile: /etc/hosts, as people and container engines write it. */
#include <stdio.h>
#include <string.h>

#include "loaders/net/hostsfile.h"
#include "tests/unit/test.h"

static void hear(void *ctx, const char *address, const char *name)
{
	char *text = ctx;

	sprintf(text + strlen(text), "%s %s\n", address, name);
}

static void expect(const char *text, const char *expected)
{
	char heard[1024] = "";

	hostsfile_parse(text, strlen(text), hear, heard);
	assert_string_equal(heard, expected);
}

TEST(the_first_name_of_each_line_is_taken)
{
	expect("10.0.0.5 db.lan db\n\t192.168.1.9\tnas # 10.0.0.6 old\r\n#10.0.0.7 off\n\nfd00::0:1 six\n::ffff:10.1.1.1 mapped",
	       "10.0.0.5 db.lan\n192.168.1.9 nas\nfd00::1 six\n10.1.1.1 mapped\n");
}

TEST(what_names_nobody_else_is_left_out)
{
	expect("127.0.0.1 localhost\n127.0.1.1 box\n::1 localhost\n0.0.0.0 ads.example.com\n:: ads6.example.com\n10.0.0.5\n10.0.0 x\nhello world\n",
	       "");
}
