/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when: times and durations as people write them. Each form is one small reader that steps over
 * what it understood; a time is good when a reader took the whole of it.
 */
#include "tools/print/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "schema/base/cli/quantity.h"
#include "schema/base/clock.h"
#include "schema/base/units.h"

#define YEAR_MIN    1970
#define YEAR_MAX    2200         /* int64 nanoseconds end in 2262 */
#define EPOCH_MAX_S 7258118400ll /* 2200 */

/* Exactly `digits` digits. */
static bool read_fixed(const char **p, int digits, int *out)
{
	int v = 0, i;

	for (i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)(*p)[i]))
			return false;
		v = v * 10 + ((*p)[i] - '0');
	}
	*p += digits;
	*out = v;
	return true;
}

static bool read_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* ".25" -> 250000000; digits past the ninth are read and dropped. Nothing there is 0. */
static bool read_fraction(const char **p, int64_t *ns)
{
	int64_t unit = NSEC_PER_SEC / 10;

	*ns = 0;
	if (**p != '.')
		return true;
	(*p)++;
	if (!isdigit((unsigned char)**p))
		return false;
	for (; isdigit((unsigned char)**p); (*p)++, unit /= 10)
		*ns += unit * (**p - '0');
	return true;
}

struct civil {
	int year, month, day, hour, minute, second;
	int64_t fraction_ns;
};

static bool read_date(const char **p, struct civil *c)
{
	return read_fixed(p, 4, &c->year) && read_char(p, '-') && read_fixed(p, 2, &c->month) &&
	       read_char(p, '-') && read_fixed(p, 2, &c->day) && c->year >= YEAR_MIN &&
	       c->year <= YEAR_MAX && c->month >= 1 && c->month <= 12 && c->day >= 1 &&
	       c->day <= 31;
}

static bool read_clock(const char **p, struct civil *c)
{
	if (!read_fixed(p, 2, &c->hour) || !read_char(p, ':') || !read_fixed(p, 2, &c->minute))
		return false;
	if (read_char(p, ':') &&
	    (!read_fixed(p, 2, &c->second) || !read_fraction(p, &c->fraction_ns)))
		return false;
	return c->hour <= 23 && c->minute <= 59 && c->second <= 60;
}

static struct tm civil_tm(const struct civil *c)
{
	return (struct tm){.tm_year = c->year - 1900,
			   .tm_mon = c->month - 1,
			   .tm_mday = c->day,
			   .tm_hour = c->hour,
			   .tm_min = c->minute,
			   .tm_sec = c->second,
			   .tm_isdst = -1};
}

/* 30 February becomes 2 March in mktime: such a day is refused. */
static bool civil_ns(const struct civil *c, bool utc, int64_t *out)
{
	struct tm tm = civil_tm(c);
	time_t t = utc ? timegm(&tm) : mktime(&tm);

	if (t == (time_t)-1 || tm.tm_mday != c->day)
		return false;
	*out = t * NSEC_PER_SEC + c->fraction_ns;
	return true;
}

static bool read_zone(const char **p, int64_t *offset_ns)
{
	int sign, hour, minute;

	*offset_ns = 0;
	if (read_char(p, 'Z') || read_char(p, 'z'))
		return true;
	sign = **p == '+' ? 1 : **p == '-' ? -1 : 0;
	if (!sign)
		return false;
	(*p)++;
	if (!read_fixed(p, 2, &hour) || !read_char(p, ':') || !read_fixed(p, 2, &minute) ||
	    hour > 23 || minute > 59)
		return false;
	*offset_ns = sign * (hour * 3600 + minute * 60) * NSEC_PER_SEC;
	return true;
}

/* 2026-11-20, with or without a time, with or without a zone after the time. */
static bool parse_date(const char *s, int64_t *out)
{
	struct civil c = {0};
	int64_t offset = 0;
	bool utc = false;

	if (!read_date(&s, &c))
		return false;
	if (*s == 'T' || *s == 't' || *s == ' ') {
		s++;
		if (!read_clock(&s, &c))
			return false;
		utc = *s && read_zone(&s, &offset);
	}
	if (*s || !civil_ns(&c, utc, out))
		return false;
	*out -= offset;
	return true;
}

static void day_of(int64_t ns, struct civil *c)
{
	time_t t = (time_t)(ns / NSEC_PER_SEC);
	struct tm tm;

	localtime_r(&t, &tm);
	*c = (struct civil){.year = tm.tm_year + 1900, .month = tm.tm_mon + 1, .day = tm.tm_mday};
}

/* The civil day before, by way of noon: days have 23 to 25 hours. */
static bool day_before(struct civil *c)
{
	struct civil noon = {.year = c->year, .month = c->month, .day = c->day, .hour = 12};
	int64_t ns;

	if (!civil_ns(&noon, false, &ns))
		return false;
	day_of(ns - 86400 * NSEC_PER_SEC, c);
	return true;
}

/* 03:10, today 03:10, yesterday 03:10, yesterday */
static bool parse_clock(const char *s, int64_t now, int64_t *out)
{
	bool today = !strncasecmp(s, "today", 5), yesterday = !strncasecmp(s, "yesterday", 9);
	struct civil c;

	day_of(now, &c);
	if (yesterday && !day_before(&c))
		return false;
	s += today ? 5 : yesterday ? 9 : 0;
	if ((today || yesterday) && *s && !read_char(&s, ' '))
		return false;
	if (!(today || yesterday) || *s)
		if (!read_clock(&s, &c))
			return false;
	if (*s || !civil_ns(&c, false, out))
		return false;
	if (today || yesterday || *out <= now)
		return true;
	c = (struct civil){.hour = c.hour,
			   .minute = c.minute,
			   .second = c.second,
			   .fraction_ns = c.fraction_ns};
	struct civil day;
	day_of(now, &day);
	if (!day_before(&day))
		return false;
	c.year = day.year;
	c.month = day.month;
	c.day = day.day;
	return civil_ns(&c, false, out);
}

/* Seconds with or without a fraction (9 to 11 digits), or milliseconds (12 to 14). */
static bool parse_epoch(const char *s, int64_t *out)
{
	size_t digits = strspn(s, "0123456789"), i;
	int64_t v = 0, fraction;

	if (digits < 9 || digits > 14)
		return false;
	for (i = 0; i < digits; i++)
		v = v * 10 + (s[i] - '0');
	s += digits;
	if (digits >= 12) {
		if (*s || v > EPOCH_MAX_S * 1000)
			return false;
		*out = v * 1000000;
		return true;
	}
	if (v > EPOCH_MAX_S || !read_fraction(&s, &fraction) || *s)
		return false;
	*out = v * NSEC_PER_SEC + fraction;
	return true;
}

int when_parse(const char *s, int64_t now_ns, int64_t *out_ns)
{
	int64_t t, back;

	if (!strcasecmp(s, "now")) {
		*out_ns = now_ns;
		return 0;
	}
	if (*s == '-') {
		if (quantity_ns(s + 1, &back) || back > now_ns)
			return -EINVAL;
		*out_ns = now_ns - back;
		return 0;
	}
	if (parse_date(s, &t) || parse_clock(s, now_ns, &t) || parse_epoch(s, &t)) {
		*out_ns = t;
		return 0;
	}
	return -EINVAL;
}

const char *when_utc(int64_t ns, char *buf, size_t size)
{
	return units_utc(ns, ns / 1000000 % 1000 ? 3 : 0, buf, size);
}

const char *when_zoned(int64_t ns, char *buf, size_t size)
{
	time_t t = (time_t)(ns / NSEC_PER_SEC);
	struct tm tm;
	size_t n;
	long away;

	localtime_r(&t, &tm);
	n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	away = labs(tm.tm_gmtoff) / 60;
	if (away)
		snprintf(buf + n, size - n, "%c%02ld:%02ld", tm.tm_gmtoff < 0 ? '-' : '+',
			 away / 60, away % 60);
	else
		snprintf(buf + n, size - n, "Z");
	return buf;
}

const char *when_local(int64_t ns, int64_t now_ns, char *buf, size_t size)
{
	time_t t = (time_t)(ns / NSEC_PER_SEC), now = (time_t)(now_ns / NSEC_PER_SEC);
	struct tm tm, today;
	bool same;

	localtime_r(&t, &tm);
	localtime_r(&now, &today);
	same = tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday;
	strftime(buf, size, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
	return buf;
}
