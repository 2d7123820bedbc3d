// SPDX-License-Identifier: Apache-2.0
/* rules: whom [targets] includes and excludes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "loaders/lib/host/rules.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct rule_process web = {.container = "web-1", .container_id = ID, .image = "nginx:1.25", .comm = "nginx",
					.exe = "/usr/sbin/nginx", .unit = "", .uid = 33};
static const struct rule_process host = {.container = "", .container_id = "", .image = "", .comm = "postgres",
					 .exe = "/usr/lib/postgresql/15/bin/postgres", .unit = "postgresql@15-main.service", .uid = 0};

static void each_kind_fits_by_its_pattern(void **state)
{
	static const struct {
		const char *rule;
		bool web, host;
	} table[] = {
		{"container:web-1", true, false}, {"container:web-*", true, false}, {"container:*", true, false},
		{"container:012345", true, false}, {"container:01234", false, false}, {"image:nginx:*", true, false},
		{"image:nginx", false, false}, {"command:nginx", true, false}, {"command:/usr/sbin/*", true, false},
		{"command:post*", false, true}, {"unit:postgresql@*", false, true}, {"unit:*", false, true}, {"user:33", true, false},
		{"user:root", false, true}, {"user:0", false, true}, {"command:x, container:web-1", true, false},
		{"command:x\tuser:root", false, true}, {"", false, false}, {" , ", false, false}, {"nonsense", false, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		assert_int_equal(rules_fit(table[i].rule, &web), table[i].web);
		assert_int_equal(rules_fit(table[i].rule, &host), table[i].host);
	}
}

static void without_include_all_are_in_and_exclude_is_stronger(void **state)
{
	(void)state;
	assert_true(rules_allow("", "", &web));
	assert_true(rules_allow(" ", "user:0", &web));
	assert_false(rules_allow("", "user:0", &host));
	assert_true(rules_allow("container:*", "", &web));
	assert_false(rules_allow("container:*", "", &host));
	assert_false(rules_allow("container:*", "image:nginx:*", &web));
}

static void what_is_no_rule_is_refused(void **state)
{
	static const char *const bad[] = {"web", "container:", ":x", "pid:7", "user:nobody-here-has-this-name", "command:a,web", "Unit:x"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(rules_check(bad[i]), -EINVAL);
	assert_int_equal(rules_check(""), 0);
	assert_int_equal(rules_check("container:web-* , user:root unit:a.service"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_fits_by_its_pattern),
		cmocka_unit_test(without_include_all_are_in_and_exclude_is_stronger),
		cmocka_unit_test(what_is_no_rule_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
