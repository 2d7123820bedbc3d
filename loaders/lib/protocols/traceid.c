// SPDX-License-Identifier: Apache-2.0
/* traceid: see the header. */
#include "loaders/lib/protocols/traceid.h"

#include <string.h>

#define TRACE_MAX 32
#define SW8_MAX   64
#define UUID_SIZE 36

static int digit(uint8_t c)
{
	return c >= '0' && c <= '9'                   ? c - '0' :
	       (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 :
							-1;
}

static size_t digits(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && digit(p[i]) >= 0)
		i++;
	return i;
}

static bool is_id(const uint8_t *p, size_t n)
{
	bool some = false;

	if (!n || n > TRACE_MAX || digits(p, n) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		some = some || p[i] != '0';
	return some;
}

uint64_t traceid_span(const uint8_t *value, size_t n)
{
	uint64_t span = 0;

	if (n > 16 || digits(value, n) != n)
		return 0;
	for (size_t i = 0; i < n; i++)
		span = span << 4 | (uint64_t)digit(value[i]);
	return span;
}

/* Bytes up to the next separator; *n goes on behind it. */
static size_t part(const uint8_t **p, size_t *n, uint8_t separator)
{
	const uint8_t *at = *p;
	size_t i = 0, skip;

	while (i < *n && at[i] != separator && !(separator == ':' && *n - i >= 3 && at[i] == '%'))
		i++;
	skip = i == *n ? 0 : at[i] == '%' ? 3 : 1;
	*p += i + skip;
	*n -= i + skip;
	return i;
}

static bool pair(const uint8_t *p, size_t n, uint8_t separator, struct traceid *out)
{
	const uint8_t *trace = p, *span;
	size_t n_trace = part(&p, &n, separator), n_span;

	span = p;
	n_span = part(&p, &n, separator);
	if (!is_id(trace, n_trace))
		return false;
	*out = (struct traceid){.text = trace, .n = n_trace, .caller = traceid_span(span, n_span)};
	return true;
}

static bool is_uuid(const uint8_t *p, size_t n)
{
	bool some = false;

	for (size_t i = 0; n == UUID_SIZE && i < n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? p[i] != '-' : digit(p[i]) < 0)
			return false;
		some = some || (!dash && p[i] != '0');
	}
	return some;
}

static bool sw8(const uint8_t *p, size_t n, struct traceid *out)
{
	const uint8_t *trace;
	size_t k;

	part(&p, &n, '-');
	trace = p;
	k = part(&p, &n, '-');
	if (!k || k > SW8_MAX)
		return false;
	for (size_t i = 0; i < k; i++)
		if (trace[i] <= ' ' || trace[i] >= 0x7f)
			return false;
	*out = (struct traceid){.text = trace, .n = k};
	return true;
}

bool traceid_read(enum traceid_form form, const uint8_t *value, size_t n, struct traceid *out)
{
	switch (form) {
	case TRACEID_W3C:
		return part(&value, &n, '-') == 2 && pair(value, n, '-', out);
	case TRACEID_B3:
		return memchr(value, '-', n) && pair(value, n, '-', out);
	case TRACEID_UBER:
		return pair(value, n, ':', out);
	case TRACEID_SW8:
		return sw8(value, n, out);
	case TRACEID_REQUEST:
		if (!is_uuid(value, n) && !(n == TRACE_MAX && is_id(value, n)))
			return false;
		break;
	case TRACEID_PLAIN:
		if (!is_id(value, n))
			return false;
		break;
	}
	*out = (struct traceid){.text = value, .n = n};
	return true;
}
