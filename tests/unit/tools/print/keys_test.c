/* SPDX-License-Identifier: Apache-2.0 */
/* keys: what terminals send for the keys of `sonde top` (xterm's, the console's and tmux's
 * sequences), whole and in pieces. */
#include <string.h>

#include "schema/base/array.h"
#include "tests/unit/test.h"
#include "tools/print/keys.h"

/* All keys of a text, and whether it was used up. */
static size_t decode(const char *text, uint32_t *keys)
{
	size_t n = strlen(text), count = 0;

	while (n) {
		size_t used = keys_decode((const unsigned char *)text, n, true, &keys[count]);

		assert_in_range(used, 1, n);
		count += keys[count] != KEY_NONE;
		text += used;
		n -= used;
	}
	return count;
}

TEST(keys_have_the_sequences_that_terminals_send)
{
	static const struct {
		const char *sent;
		uint32_t key;
	} cases[] = {
		{"\033[A", KEY_UP},
		{"\033OA", KEY_UP},
		{"\033[1;5B", KEY_DOWN},
		{"\033[D", KEY_LEFT},
		{"\033OC", KEY_RIGHT},
		{"\033[5~", KEY_PAGE_UP},
		{"\033[6~", KEY_PAGE_DOWN},
		{"\033[H", KEY_HOME},
		{"\033[1~", KEY_HOME},
		{"\033[7~", KEY_HOME},
		{"\033[F", KEY_END},
		{"\033[4~", KEY_END},
		{"\033OF", KEY_END},
		{"\r", KEY_ENTER},
		{"\n", KEY_ENTER},
		{"\033OM", KEY_ENTER},
		{"\177", KEY_BACKSPACE},
		{"\010", KEY_BACKSPACE},
		{"\033", KEY_ESCAPE},
		{"q", 'q'},
		{"\303\244", 0xe4},
		{"\342\202\254", 0x20ac},
		{"\360\237\224\245", 0x1f525},
	};
	uint32_t keys[16];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(decode(cases[i].sent, keys), 1);
		assert_int_equal(keys[0], cases[i].key);
	}
}

TEST(what_is_no_key_is_dropped_and_the_next_one_is_read)
{
	static const char *const dropped[] = {"\033[15~", "\033[?62;c", "\033[<0;10;20M", "\001",
					      "\300\200", "\377",       "\355\240\200",   "\033[Z"};
	char text[64];
	uint32_t keys[64];

	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++) {
		size_t n = strlen(dropped[i]);

		memcpy(text, dropped[i], n);
		memcpy(text + n, "q", 2);
		assert_int_equal(decode(text, keys), 1);
		assert_int_equal(keys[0], 'q');
	}
}

TEST(a_key_that_has_not_come_whole_waits)
{
	static const char *const whole[] = {"\033[5~", "\033OA", "\360\237\224\245"};
	uint32_t key;

	for (size_t i = 0; i < 3; i++)
		for (size_t n = 1; n < strlen(whole[i]); n++)
			assert_int_equal(
				keys_decode((const unsigned char *)whole[i], n, false, &key), 0);
	assert_int_equal(keys_decode((const unsigned char *)"\033q", 2, false, &key), 1);
	assert_int_equal(key, KEY_ESCAPE);
}

TEST(a_sequence_without_an_end_is_no_key)
{
	unsigned char text[80] = "\033[";
	uint32_t key;

	memset(text + 2, '1', sizeof(text) - 2);
	assert_int_equal(keys_decode(text, sizeof(text), false, &key), 1);
	assert_int_equal(key, KEY_NONE);
}
