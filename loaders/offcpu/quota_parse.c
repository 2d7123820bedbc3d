/* SPDX-License-Identifier: Apache-2.0 */
/* quota_parse: the two files of quota.h, from bytes alone. */
#include <string.h>

#include "loaders/offcpu/quota.h"
#include "schema/base/clock.h"

static bool number_at(const char *p, const char *end, uint64_t *out)
{
	uint64_t n = 0;
	const char *from = p;

	while (p < end && *p >= '0' && *p <= '9')
		if (__builtin_mul_overflow(n, 10ull, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p++ - '0'), &n))
			return false;
	*out = n;
	return p > from;
}

bool quota_parse_cpustat(const char *text, size_t len, struct store_throttle *out)
{
	struct store_throttle t = {0};
	const char *end = text + len;
	bool found = false;

	for (const char *line = text; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line)), *space;
		uint64_t n;

		stop = stop ? stop : end;
		space = memchr(line, ' ', (size_t)(stop - line));
		if (space && number_at(space + 1, stop, &n)) {
			size_t name = (size_t)(space - line);

			if (name == 10 && !memcmp(line, "nr_periods", 10)) {
				t.periods = n;
				found = true;
			} else if (name == 12 && !memcmp(line, "nr_throttled", 12)) {
				t.throttled = n;
			} else if (name == 14 && !memcmp(line, "throttled_usec", 14)) {
				t.throttled_ns = n > UINT64_MAX / 1000 ? UINT64_MAX : n * 1000;
			} else if (name == 14 && !memcmp(line, "throttled_time", 14)) {
				t.throttled_ns = n;
			}
		}
		line = stop < end ? stop + 1 : end;
	}
	if (found)
		*out = t;
	return found;
}

bool quota_parse_stat(const char *text, size_t len, long ticks, struct store_steal *out)
{
	enum { IDLE = 3, IOWAIT = 4, STEAL = 7, FIELDS = 8 };
	const char *p = text, *end = memchr(text, '\n', len);
	uint64_t field[FIELDS] = {0}, sum = 0,
		 tick = ticks > 0 ? (uint64_t)NSEC_PER_SEC / (uint64_t)ticks : 0;

	end = end ? end : text + len;
	if (len < 4 || memcmp(text, "cpu ", 4) || !tick)
		return false;
	p += 4;
	for (int i = 0; i < FIELDS; i++) {
		while (p < end && *p == ' ')
			p++;
		if (!number_at(p, end, &field[i]) || field[i] > UINT64_MAX / 16 / tick)
			return false;
		while (p < end && *p != ' ')
			p++;
		sum += field[i];
	}
	*out = (struct store_steal){.steal_ns = field[STEAL] * tick,
				    .idle_ns = (field[IDLE] + field[IOWAIT]) * tick,
				    .cpu_ns = sum * tick};
	return true;
}
