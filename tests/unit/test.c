/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#define TESTS_MAX 256

static struct {
	const struct CMUnitTest *test;
	int line;
} tests[TESTS_MAX];
static size_t n_tests;

void test_register(const struct CMUnitTest *test, int line)
{
	size_t i = n_tests++;

	if (i == TESTS_MAX)
		abort();
	for (; i && tests[i - 1].line > line; i--)
		tests[i] = tests[i - 1];
	tests[i].test = test;
	tests[i].line = line;
}

/* The program's name is the name of the group, and so of the test suite in the XML. */
int main(void)
{
	struct test_group group = {0};
	struct CMUnitTest table[TESTS_MAX];

	for (size_t i = 0; i < n_tests; i++)
		table[i] = *tests[i].test;
	if (&test_group)
		group = test_group;
	return _cmocka_run_group_tests(program_invocation_short_name, table, n_tests, group.setup,
				       group.teardown);
}
