/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test: cmocka with tests that register themselves. A unit test program is a file of
 *
 *	TEST(a_sentence_that_holds)
 *	{
 *		assert_int_equal(answer(), 42);
 *	}
 *
 * linked with test.c, whose main() runs them in the order of the file. Only the file of the tests
 * may define tests: the order is that of its lines.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/* cmocka.h needs these four before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) TEST_DEFINE(name, NULL, NULL, test_state_)

/*
 * A test with what runs before and after it: int setup(void **state), or NULL. In the body, `state`
 * points to what setup left in *state.
 */
#define TEST_WITH(name, setup, teardown) TEST_DEFINE(name, setup, teardown, state)

#define TEST_DEFINE(name, setup, teardown, state)                                           \
	static void name(void **state);                                                     \
	__attribute__((constructor)) static void name##_register(void)                      \
	{                                                                                   \
		static const struct CMUnitTest test = {#name, name, setup, teardown, NULL}; \
		test_register(&test, __LINE__);                                             \
	}                                                                                   \
	static void name(__attribute__((unused)) void **state)

/* Borrows the test. `line` gives its place: compilers may run constructors in any order. */
void test_register(const struct CMUnitTest *test, int line);

/* What runs once before the first and after the last test. A program that needs it defines it:
 *	const struct test_group test_group = {begin, end};
 * In the others its address is NULL. */
struct test_group {
	int (*setup)(void **state), (*teardown)(void **state);
};
extern const struct test_group test_group __attribute__((weak));

#endif
