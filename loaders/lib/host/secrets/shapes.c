/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/secrets/shapes.h"

#include <ctype.h>
#include <stdbool.h>

#define CARD_LEAST 13
#define CARD_MOST  19
#define SLASH_IN   16 /* bytes of a word for each slash that it may have */

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Rule 1: as a number is given out. */
static bool begins_as_card(const char *digits)
{
	int four = (digits[0] - '0') * 1000 + (digits[1] - '0') * 100 + (digits[2] - '0') * 10 +
		   digits[3] - '0';

	return (four >= 2221 && four <= 2720) || (digits[0] >= '3' && digits[0] <= '6');
}

static bool luhn(const char *digits, size_t n)
{
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned d = (unsigned)(digits[n - 1 - i] - '0') << (i % 2);

		sum += d > 9 ? d - 9 : d;
	}
	return sum % 10 == 0;
}

static size_t card_at(const char *p, size_t n)
{
	char digits[CARD_MOST];
	size_t found = 0, i = 0;

	for (; i < n; i++) {
		if (digit(p[i])) {
			if (found == CARD_MOST)
				return 0;
			digits[found++] = p[i];
		} else if ((p[i] != ' ' && p[i] != '-') || i + 1 >= n || !digit(p[i + 1])) {
			break;
		} else if (found % 4 && found != 10) { /* 4-4-4-4, 4-6-5 */
			break;
		}
	}
	if (i < n && (isalnum((unsigned char)p[i]) || p[i] == '_'))
		return 0;
	return found >= CARD_LEAST && begins_as_card(digits) && luhn(digits, found) ? i : 0;
}

static bool in_base64(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '/' || c == '-' || c == '_';
}

static size_t base64_at(const char *p, size_t n)
{
	size_t i = 0, slashes = 0;
	bool small = false, large = false, number = false;

	for (; i < n && in_base64(p[i]); i++) {
		small |= islower((unsigned char)p[i]) != 0;
		large |= isupper((unsigned char)p[i]) != 0;
		number |= digit(p[i]);
		slashes += p[i] == '/';
	}
	if (i < SHAPES_BASE64 || !small || !large || !number || *p == '/' || slashes > i / SLASH_IN)
		return 0;
	for (int pads = 0; pads < 2 && i < n && p[i] == '='; pads++)
		i++;
	return i;
}

size_t shape_at(const char *p, size_t n)
{
	size_t len = n && digit(*p) ? card_at(p, n) : 0;

	return len ? len : base64_at(p, n);
}
