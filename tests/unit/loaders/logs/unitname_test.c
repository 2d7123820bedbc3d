/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "loaders/logs/unitname.h"
#include "tests/unit/test.h"

static void assert_folds(const char *name, const char *to)
{
	char room[80];

	snprintf(room, sizeof(room), "%s", name);
	unitname_fold(room);
	assert_string_equal(room, to);
}

TEST(numbered_units_are_one)
{
	assert_folds("session-3.scope", "session.scope");
	assert_folds("session-c12.scope", "session.scope");
	assert_folds("session-10482.scope", "session.scope");
	assert_folds("run-u51.service", "run.service");
	assert_folds("run-r0f3a51bb0d6c4b3f9a7d1e2c3b4a5968.scope", "run.scope");
	assert_folds("run-p812-i813.scope", "run.scope");
}

TEST(all_others_stay)
{
	static const char *const names[] = {"",
					    "session-.scope",
					    "session.scope",
					    "session-3.service",
					    "run-docker.service",
					    "run-parts-1.service",
					    "run-.scope",
					    "my-session-3.scope",
					    "user@1000.service",
					    "getty@tty1.service",
					    "kernel",
					    "session-3.scope.d",
					    "\nsession-3.scope"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_folds(names[i], names[i]);
}
