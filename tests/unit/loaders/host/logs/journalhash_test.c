/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes of the journal's fields, by their authors' own examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "loaders/host/logs/journalhash.h"

static void siphash_is_that_of_its_paper(void **state)
{
	uint8_t key[16], text[15];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	memcpy(text, key, sizeof(text));
	assert_true(journalhash_sip(text, sizeof(text), key) == 0xa129ca6149be45e5u);
}

static void lookup3_is_that_of_its_author(void **state)
{
	static const char text[] = "Four score and seven years ago";

	(void)state;
	assert_true(journalhash_jenkins(text, strlen(text)) == 0x17770551ce7226e6u);
	assert_true(journalhash_jenkins("", 0) == 0xdeadbeefdeadbeefu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_is_that_of_its_paper),
		cmocka_unit_test(lookup3_is_that_of_its_author),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
