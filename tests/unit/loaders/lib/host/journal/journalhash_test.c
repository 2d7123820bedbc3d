/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes of the journal's fields, checked with the examples of the hashes' authors. */
#include <string.h>

#include "loaders/lib/host/journal/journalhash.h"
#include "tests/unit/test.h"

TEST(siphash_is_that_of_its_paper)
{
	uint8_t key[16], text[15];

	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	memcpy(text, key, sizeof(text));
	assert_true(journalhash_sip(text, sizeof(text), key) == 0xa129ca6149be45e5u);
}

TEST(lookup3_is_that_of_its_author)
{
	static const char text[] = "Four score and seven years ago";

	assert_true(journalhash_jenkins(text, strlen(text)) == 0x17770551ce7226e6u);
	assert_true(journalhash_jenkins("", 0) == 0xdeadbeefdeadbeefu);
}
