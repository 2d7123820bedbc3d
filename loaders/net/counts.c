/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/counts.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/facts/net.h"

static const struct {
	const char *line, *name;
	enum netns_column column;
} COUNTERS[] = {
	{"Tcp", "ActiveOpens", NETNS_ACTIVE},   {"Tcp", "PassiveOpens", NETNS_PASSIVE},
	{"Tcp", "AttemptFails", NETNS_FAILS},   {"Tcp", "EstabResets", NETNS_RESETS},
	{"Tcp", "OutRsts", NETNS_OUT_RSTS},     {"Tcp", "RetransSegs", NETNS_RETRANS},
	{"Tcp", "CurrEstab", NETNS_ESTAB},      {"TcpExt", "ListenOverflows", NETNS_OVERFLOWS},
	{"TcpExt", "ListenDrops", NETNS_DROPS}, {"Udp", "InDatagrams", NETNS_UDP_IN},
	{"Udp", "OutDatagrams", NETNS_UDP_OUT}, {"Udp", "NoPorts", NETNS_UDP_NO_PORT},
	{"Udp", "InErrors", NETNS_UDP_ERRORS},
};

static size_t word(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && at[n] != ' ' && at[n] != '\n')
		n++;
	return n;
}

static void counter_put(const char *line, size_t line_len, const char *name, size_t len,
			const char *value, size_t value_len, struct fact_row *row)
{
	uint64_t v = 0;

	for (size_t i = 0; i < value_len; i++) {
		if (value[i] < '0' || value[i] > '9' || v > (UINT64_MAX - 9) / 10)
			return;
		v = v * 10 + (uint64_t)(value[i] - '0');
	}
	for (size_t i = 0; value_len && i < ARRAY_SIZE(COUNTERS); i++)
		if (strlen(COUNTERS[i].line) == line_len &&
		    !memcmp(COUNTERS[i].line, line, line_len) && strlen(COUNTERS[i].name) == len &&
		    !memcmp(COUNTERS[i].name, name, len))
			fact_put(row, COUNTERS[i].column, v);
}

/* Two lines that begin with the same word and a colon: names, and their values. */
static void lines_parse(const char *names, const char *names_end, const char *values,
			const char *values_end, struct fact_row *row)
{
	size_t head = word(names, names_end);

	if (!head || names[head - 1] != ':' || word(values, values_end) != head ||
	    memcmp(names, values, head))
		return;
	for (const char *n = names + head, *v = values + head;
	     n < names_end && v < values_end && *n == ' ' && *v == ' ';) {
		size_t a = word(++n, names_end), b = word(++v, values_end);

		counter_put(names, head - 1, n, a, v, b, row);
		n += a;
		v += b;
	}
}

void counts_parse(const char *text, size_t len, struct fact_row *row)
{
	const char *at = text, *end = text + len;

	while (at < end) {
		const char *first = memchr(at, '\n', (size_t)(end - at)), *second;

		if (!first)
			return;
		second = memchr(first + 1, '\n', (size_t)(end - first - 1));
		if (!second)
			second = end;
		lines_parse(at, first, first + 1, second, row);
		at = second < end ? second + 1 : end;
	}
}
