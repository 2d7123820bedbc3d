/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"

#define S_NS  1e9
#define MIN_S 60
#define H_MIN 60
#define D_H   24
/* From twice a unit on durations are written in it: 90 s, 2 min. */
#define TWO_MIN_S (2 * MIN_S)
#define TWO_H_S   (2 * 60 * MIN_S)
#define TWO_D_MIN (2 * D_H * H_MIN)

/* "1.24", "1.5", "38", "412". */
static void three_digits(double v, char *buf, size_t size)
{
	const int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
	size_t len;

	snprintf(buf, size, "%.*f", decimals, v);
	if (!decimals)
		return;
	for (len = strlen(buf); buf[len - 1] == '0';)
		buf[--len] = '\0';
	if (buf[len - 1] == '.')
		buf[len - 1] = '\0';
}

static const char *with_unit(double v, const char *unit, char *buf, size_t size)
{
	char number[24];

	three_digits(v, number, sizeof(number));
	snprintf(buf, size, "%s %s", number, unit);
	return buf;
}

static const char *two_units(uint64_t n, unsigned per, const char *large, const char *small,
			     char *buf, size_t size)
{
	if (n % per)
		snprintf(buf, size, "%" PRIu64 " %s %" PRIu64 " %s", n / per, large, n % per,
			 small);
	else
		snprintf(buf, size, "%" PRIu64 " %s", n / per, large);
	return buf;
}

static const char *long_duration(double seconds, char *buf, size_t size)
{
	const uint64_t s = (uint64_t)(seconds + 0.5), min = (uint64_t)(seconds / MIN_S + 0.5);

	if (s < TWO_H_S)
		return two_units(s, MIN_S, "min", "s", buf, size);
	if (min < TWO_D_MIN)
		return two_units(min, H_MIN, "h", "min", buf, size);
	return two_units((min + H_MIN / 2) / H_MIN, D_H, "d", "h", buf, size);
}

const char *units_ns(int64_t ns, char *buf, size_t size)
{
	static const char *const units[] = {"ns", "us", "ms"};
	double v = (double)ns;

	if (ns <= 0)
		return with_unit(0, "s", buf, size);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++, v /= 1e3)
		if (v < 999.5)
			return with_unit(v, units[i], buf, size);
	return v < TWO_MIN_S - 0.5 ? with_unit(v, "s", buf, size) : long_duration(v, buf, size);
}

const char *units_seconds(double seconds, char *buf, size_t size)
{
	const double ns = seconds * S_NS;

	return units_ns(ns > 0 && ns < 0x1p62 ? (int64_t)ns : 0, buf, size);
}

const char *units_bytes(uint64_t n, char *buf, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)n;
	size_t i = 0;

	for (; v >= 1023.5 && i + 1 < ARRAY_SIZE(units); i++)
		v /= 1024;
	return with_unit(v, units[i], buf, size);
}

const char *units_count(uint64_t n, char *buf, size_t size)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), i;
	size_t pos = 0;

	for (i = 0; i < len && pos + 2 < size; i++) {
		if (i && (len - i) % 3 == 0)
			buf[pos++] = ' ';
		buf[pos++] = digits[i];
	}
	buf[pos] = '\0';
	return buf;
}

const char *units_cores(double cores, char *buf, size_t size)
{
	snprintf(buf, size, cores < 0.0995 && cores > 0 ? "%.3f cores" : "%.2f cores", cores);
	return buf;
}

const char *units_share(double part, double whole, char *buf, size_t size)
{
	snprintf(buf, size, "%.1f %%", whole > 0 ? 100 * part / whole : 0);
	return buf;
}

const char *units_utc(int64_t utc_ns, int digits, char *buf, size_t size)
{
	const time_t s = (time_t)(utc_ns / NSEC_PER_SEC);
	int64_t rest = utc_ns % NSEC_PER_SEC;
	struct tm tm = {0};
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	for (int i = digits; i < 9; i++)
		rest /= 10;
	if (digits)
		snprintf(buf + n, size - n, ".%0*" PRId64 "Z", digits, rest);
	else
		snprintf(buf + n, size - n, "Z");
	return buf;
}
