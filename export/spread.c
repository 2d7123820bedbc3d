/* SPDX-License-Identifier: Apache-2.0 */
/* spread: see the header. */
#include "export/spread.h"

#include <ctype.h>
#include <sqlite3.h>

#include "schema/base/strbuf.h"
#include "schema/store/model/hist.h"

struct sums {
	uint64_t below[METRIC_BOUNDS], n;
};

/* The power of two that step k lies below the end of: its values are smaller than 2^that. */
static unsigned step_exponent(uint64_t k, unsigned steps)
{
	if (steps == 1)
		return (unsigned)k + 1;
	return k < 8 ? 3 : (unsigned)(k / 8) + 3;
}

static const char *number_read(const char *p, const char *end, uint64_t *out)
{
	uint64_t v = 0;
	const char *begin;

	while (p < end && isspace((unsigned char)*p))
		p++;
	for (begin = p; p < end && isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(v, 10ull, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return NULL;
	*out = v;
	if (p == begin)
		return NULL;
	while (p < end && isspace((unsigned char)*p))
		p++;
	return p;
}

bool spread_add(uint64_t below[METRIC_BOUNDS], const char *text, size_t len, unsigned steps)
{
	const char *p = text, *end = text + len;
	uint64_t k, c;

	if (!len || *p != '[' || !(p = number_read(p + 1, end, &k)))
		return false;
	for (; p < end && *p == ','; k++) {
		p = number_read(p + 1, end, &c);
		if (!p || k >= HIST_WIDE)
			return false;
		for (unsigned i = 0; i < METRIC_BOUNDS; i++)
			if (step_exponent(k, steps) <= METRIC_BOUND_EXPONENT(i))
				below[i] += c;
	}
	return p < end && *p == ']';
}

static void step(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	struct sums *s = sqlite3_aggregate_context(ctx, sizeof(*s));
	const char *text = (const char *)sqlite3_value_text(v[0]);

	(void)n;
	if (!s)
		return;
	s->n += (uint64_t)sqlite3_value_int64(v[2]);
	if (text)
		spread_add(s->below, text, (size_t)sqlite3_value_bytes(v[0]), (unsigned)sqlite3_value_int(v[1]));
}

static void final(sqlite3_context *ctx)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct sums *s = sqlite3_aggregate_context(ctx, 0);

	if (!s)
		return;
	for (unsigned i = 0; i < METRIC_BOUNDS; i++) {
		strbuf_addu(&out, s->below[i]);
		strbuf_addch(&out, ' ');
	}
	strbuf_addu(&out, s->n);
	sqlite3_result_text(ctx, strbuf_str(&out), (int)out.len, SQLITE_TRANSIENT);
}

int spread_register(sqlite3 *db)
{
	return sqlite3_create_function(db, "hist_all", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, NULL, step, final);
}
