/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/cli/quantity.h"
#include "schema/base/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SEC        1000000000ll
#define DIGITS_MAX 15

static int digits(const char **s, uint64_t *out)
{
	size_t n = strspn(*s, "0123456789");

	*out = 0;
	if (n > DIGITS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		*out = *out * 10 + (uint64_t)((*s)[i] - '0');
	*s += n;
	return n ? 0 : -EINVAL;
}

/* "", "K", "KB", "KiB", "B", in any case: the shift that the unit means; -1: unknown unit */
static int unit_shift(const char *s)
{
	static const char letters[] = "kmgt";
	const char *at;
	int shift = 0;

	while (*s == ' ')
		s++;
	at = *s ? strchr(letters, tolower((unsigned char)*s)) : NULL;
	if (at) {
		shift = 10 * (int)(at - letters + 1);
		s++;
		if (!strcasecmp(s, "ib"))
			return shift;
	}
	return !*s || !strcasecmp(s, "b") ? shift : -1;
}

int quantity_bytes(const char *s, uint64_t *out)
{
	uint64_t whole, part = 0, tenths = 1, sum;
	int shift;

	if (digits(&s, &whole))
		return -EINVAL;
	if (*s == '.') {
		const char *begin = ++s;

		if (strspn(s, "0123456789") > 3 || digits(&s, &part))
			return -EINVAL;
		for (; begin < s; begin++)
			tenths *= 10;
	}
	shift = unit_shift(s);
	if (shift < 0 || __builtin_mul_overflow(whole, 1ull << shift, &sum) ||
	    __builtin_add_overflow(sum, (part << shift) / tenths, &sum) || !sum || sum > INT64_MAX)
		return -EINVAL;
	*out = sum;
	return 0;
}

#define DURATION_MAX_NS (100ll * 366 * 86400 * SEC)

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {{"d", 86400 * SEC}, {"h", 3600 * SEC}, {"m", 60 * SEC},   {"s", SEC},
	     {"ms", 1000000},    {"us", 1000},      {"min", 60 * SEC}, {"w", 7 * 86400 * SEC}};
#define N_UNITS ARRAY_SIZE(units)
#define N_SAID  5 /* what is printed is in the first of them */

/* ".25" -> 250000000; digits past the ninth are read and dropped. Nothing there is 0. */
static int fraction(const char **s, int64_t *out)
{
	int64_t unit = SEC / 10;

	*out = 0;
	if (**s != '.')
		return 0;
	if (!isdigit((unsigned char)*++*s))
		return -EINVAL;
	for (; isdigit((unsigned char)**s); (*s)++, unit /= 10)
		*out += unit * (**s - '0');
	return 0;
}

static int64_t unit_ns(const char *s, size_t len)
{
	for (size_t i = 0; i < N_UNITS; i++)
		if (strlen(units[i].name) == len && !memcmp(units[i].name, s, len))
			return units[i].ns;
	return 0;
}

int quantity_ns(const char *s, int64_t *out)
{
	int64_t sum = 0;

	do {
		int64_t unit, one, part;
		size_t letters;
		uint64_t n;

		if (digits(&s, &n) || fraction(&s, &part))
			return -EINVAL;
		letters = strspn(s, "abcdefghijklmnopqrstuvwxyz");
		unit = unit_ns(s, letters);
		if (!unit || __builtin_mul_overflow((int64_t)n, unit, &one))
			return -EINVAL;
		one += (int64_t)((double)part / SEC * (double)unit);
		if (__builtin_add_overflow(sum, one, &sum) || sum > DURATION_MAX_NS)
			return -EINVAL;
		s += letters;
	} while (*s);
	if (!sum)
		return -EINVAL;
	*out = sum;
	return 0;
}

bool quantity_lacks_unit(const char *s)
{
	uint64_t n;
	int64_t part;

	return !digits(&s, &n) && !fraction(&s, &part) && !*s && (n || part);
}

const char *quantity_say_ns(int64_t ns, char *buf, size_t size)
{
	size_t i = 0;
	int64_t rest;

	while (i + 1 < N_SAID && ns < units[i].ns)
		i++;
	rest = ns % units[i].ns;
	snprintf(buf, size, "%lld%s", (long long)(ns / units[i].ns), units[i].name);
	if (i + 2 < N_SAID && rest >= units[i + 1].ns) {
		size_t len = strlen(buf);

		snprintf(buf + len, size - len, " %lld%s", (long long)(rest / units[i + 1].ns),
			 units[i + 1].name);
	}
	return buf;
}
