/* SPDX-License-Identifier: Apache-2.0 */
/* rules: whom [targets] includes and excludes. */
#include <errno.h>
#include <string.h>

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/names/rules.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct rule_process web = {.container = "web-1",
					.container_id = ID,
					.image = "nginx:1.25",
					.comm = "nginx",
					.exe = "/usr/sbin/nginx",
					.unit = "",
					.uid = 33};
static const struct rule_process host = {.container = "",
					 .container_id = "",
					 .image = "",
					 .comm = "postgres",
					 .exe = "/usr/lib/postgresql/15/bin/postgres",
					 .unit = "postgresql@15-main.service",
					 .uid = 0};

TEST(each_kind_fits_by_its_pattern)
{
	static const struct {
		const char *rule;
		bool web, host;
	} table[] = {{"container:web-1", true, false},
		     {"container:web-*", true, false},
		     {"container:*", true, false},
		     {"container:012345", true, false},
		     {"container:01234", false, false},
		     {"image:nginx:*", true, false},
		     {"image:nginx", false, false},
		     {"command:nginx", true, false},
		     {"command:/usr/sbin/*", true, false},
		     {"command:post*", false, true},
		     {"unit:postgresql@*", false, true},
		     {"unit:*", false, true},
		     {"user:33", true, false},
		     {"user:root", false, true},
		     {"user:0", false, true},
		     {"command:x, container:web-1", true, false},
		     {"command:x\tuser:root", false, true},
		     {"", false, false},
		     {" , ", false, false},
		     {"nonsense", false, false}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		assert_int_equal(rules_fit(table[i].rule, &web, false), table[i].web);
		assert_int_equal(rules_fit(table[i].rule, &host, false), table[i].host);
	}
}

TEST(without_include_all_are_in_and_exclude_is_stronger)
{
	assert_true(rules_allow("", "", &web));
	assert_true(rules_allow(" ", "user:0", &web));
	assert_false(rules_allow("", "user:0", &host));
	assert_true(rules_allow("container:*", "", &web));
	assert_false(rules_allow("container:*", "", &host));
	assert_false(rules_allow("container:*", "image:nginx:*", &web));
}

TEST(what_is_not_known_is_left_out_and_never_asked_for)
{
	static const struct container_names no_names,
		named = {.name = (char *)(uintptr_t) "web-1",
			 .image = (char *)(uintptr_t) "nginx:1.25"};
	static const char unit[] = "/system.slice/a.service", docker[] = "/docker/" ID,
			  lxc[] = "/lxc.payload.web1";
	static const struct {
		const char *cgroup; /* NULL: not known */
		const struct container_names *names;
		const char *exclude, *include;
		bool allowed;
	} table[] = {
		{docker, &no_names, "container:vault", NULL, false},
		{docker, &no_names, "image:vault*", NULL, false},
		{docker, &no_names, "unit:vault.service", NULL, true},
		{docker, &no_names, "command:vault", NULL, true},
		{docker, &no_names, NULL, "container:web-*", false},
		{docker, &no_names, NULL, "container:012345", true},
		{docker, &no_names, NULL, "container:0123*", true},
		{docker, &named, "container:vault image:vault*", NULL, true},
		{docker, &named, "image:nginx*", NULL, false},
		{unit, &no_names, "container:* image:*", NULL, true},
		{unit, &no_names, "unit:a*", NULL, false},
		{lxc, &no_names, "container:vault image:vault*", NULL, true},
		{lxc, &no_names, "container:web*", NULL, false},
		{NULL, &no_names, "unit:vault.service", NULL, false},
		{NULL, &no_names, "container:vault", NULL, false},
		{NULL, &no_names, "command:vault user:4", NULL, true},
		{NULL, &no_names, NULL, "unit:* container:*", false},
	};
	struct rule_process gone = {
		.unit = "", .container = "", .container_id = "", .image = "", .no_uid = true};
	struct container_ref ref;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct rule_process p = {.comm = "sh", .exe = "/bin/sh"};

		if (table[i].cgroup)
			container_parse(table[i].cgroup, strlen(table[i].cgroup), &ref);
		rules_place(&p, table[i].cgroup ? &ref : NULL, table[i].names);
		if (rules_allow(table[i].include ? table[i].include : "",
				table[i].exclude ? table[i].exclude : "", &p) != table[i].allowed)
			fail_msg("row %zu", i);
	}
	assert_false(rules_allow("", "user:4", &gone));
	assert_false(rules_allow("", "command:/usr/bin/x", &gone));
	assert_false(rules_allow("user:0", "", &gone));
	assert_true(rules_allow("", "unit:x container:y", &gone));
}

TEST(what_is_no_rule_is_refused)
{
	static const char *const bad[] = {
		"web",           "container:", ":x", "pid:7", "user:nobody-here-has-this-name",
		"command:a,web", "Unit:x"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(rules_check(bad[i]), -EINVAL);
	assert_int_equal(rules_check(""), 0);
	assert_int_equal(rules_check("container:web-* , user:root unit:a.service"), 0);
}
