/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/keys.h"
#include "schema/base/array.h"

#define ESC     27
#define LONGEST 32

/* By the final letter, and of `~` by the first parameter. */
static uint32_t named(unsigned char final, unsigned parameter)
{
	static const struct {
		unsigned char final;
		unsigned parameter;
		uint32_t key;
	} names[] = {
		{'A', 0, KEY_UP},      {'B', 0, KEY_DOWN},      {'C', 0, KEY_RIGHT},
		{'D', 0, KEY_LEFT},    {'H', 0, KEY_HOME},      {'F', 0, KEY_END},
		{'M', 0, KEY_ENTER},   {'~', 1, KEY_HOME},      {'~', 4, KEY_END},
		{'~', 5, KEY_PAGE_UP}, {'~', 6, KEY_PAGE_DOWN}, {'~', 7, KEY_HOME},
		{'~', 8, KEY_END},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].final == final && (final != '~' || names[i].parameter == parameter))
			return names[i].key;
	return KEY_NONE;
}

/* ESC [ ... or ESC O ...; n >= 2. */
static size_t sequence(const unsigned char *b, size_t n, bool last, uint32_t *key)
{
	unsigned parameter = 0;
	bool first = true;

	for (size_t i = 2; i < n && i < LONGEST; i++) {
		if (b[i] >= 0x40 && b[i] <= 0x7e) {
			*key = b[1] == '[' && b[i] == 'M' ? KEY_NONE /* a mouse's */ :
							    named(b[i], parameter);
			return i + 1;
		}
		if (b[i] < 0x20 || b[i] > 0x7e)
			return i; /* broken off: what follows is something else */
		first = first && b[i] >= '0' && b[i] <= '9';
		parameter = first && parameter < 1000 ? parameter * 10 + (b[i] - '0') : parameter;
	}
	return n >= LONGEST ? 1 : last ? n : 0;
}

static size_t character(const unsigned char *b, size_t n, bool last, uint32_t *key)
{
	size_t len = b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf5 ? 4 : 0;
	uint32_t c = len ? b[0] & (0xffu >> (len + 1)) : 0;

	for (size_t i = 1; i < len; i++) {
		if (i == n)
			return last ? n : 0;
		if ((b[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (b[i] & 0x3f);
	}
	if (!len || (len == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (len == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 1;
	*key = c;
	return len;
}

size_t keys_decode(const unsigned char *b, size_t n, bool last, uint32_t *key)
{
	*key = KEY_NONE;
	if (b[0] >= 0x80)
		return character(b, n, last, key);
	if (b[0] != ESC) {
		*key = b[0] == '\r' || b[0] == '\n' ? KEY_ENTER :
		       b[0] == 127 || b[0] == 8     ? KEY_BACKSPACE :
		       b[0] < 32                    ? KEY_NONE :
						      b[0];
		return 1;
	}
	if (n == 1 && !last)
		return 0;
	if (n > 1 && (b[1] == '[' || b[1] == 'O'))
		return sequence(b, n, last, key);
	*key = KEY_ESCAPE;
	return 1;
}
