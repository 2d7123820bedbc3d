/* SPDX-License-Identifier: Apache-2.0 */
/* hist: histograms by powers of two; the form is told in the header. */
#include "schema/store/model/hist.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

unsigned hist_slot(uint64_t value)
{
	return value ? 63u - (unsigned)__builtin_clzll(value) : 0;
}

static bool encode(const uint64_t *counts, unsigned slots, struct strbuf *out)
{
	unsigned first = 0, last = slots;

	while (first < slots && !counts[first])
		first++;
	if (first == slots)
		return false;
	while (!counts[last - 1])
		last--;
	strbuf_addf(out, "[%u", first);
	for (unsigned i = first; i < last; i++)
		strbuf_addf(out, ",%" PRIu64, counts[i]);
	strbuf_addch(out, ']');
	return true;
}

bool hist_encode(const uint64_t counts[HIST_SLOTS], struct strbuf *out)
{
	return encode(counts, HIST_SLOTS, out);
}

bool hist_encode_wide(const uint64_t counts[HIST_WIDE], struct strbuf *out)
{
	return encode(counts, HIST_WIDE, out);
}

struct hist_text {
	const char *at, *end;
};

static void skip_blanks(struct hist_text *t)
{
	while (t->at < t->end && strchr(" \t\r\n", *t->at) && *t->at)
		t->at++;
}

/* The next token, if it is `c`. */
static bool take(struct hist_text *t, char c)
{
	skip_blanks(t);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static bool take_number(struct hist_text *t, uint64_t *out)
{
	uint64_t v = 0;
	const char *from;

	skip_blanks(t);
	from = t->at;
	for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
		uint64_t digit = (uint64_t)(*t->at - '0');

		if (v > (INT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return t->at != from;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static bool add(uint64_t *counts, unsigned slots, const char *text, size_t len)
{
	struct hist_text t = {text, text + len};
	uint64_t slot, n;

	if (!take(&t, '[') || !take_number(&t, &slot) || slot >= slots)
		return false;
	while (take(&t, ',')) {
		if (slot >= slots || !take_number(&t, &n))
			return false;
		counts[slot] = add_saturating(counts[slot], n);
		slot++;
	}
	if (!take(&t, ']'))
		return false;
	skip_blanks(&t);
	return t.at == t.end;
}

bool hist_add(uint64_t counts[HIST_SLOTS], const char *text, size_t len)
{
	return add(counts, HIST_SLOTS, text, len);
}

double hist_quantile(const uint64_t counts[HIST_SLOTS], double q)
{
	double total = 0, below = 0, want;

	for (unsigned i = 0; i < HIST_SLOTS; i++)
		total += (double)counts[i];
	want = total * (q < 0 ? 0 : q > 1 ? 1 : q);
	for (unsigned i = 0; i < HIST_SLOTS; i++) {
		double low = i ? (double)(1ull << i) : 0, high = (double)(1ull << i) * 2, n = (double)counts[i];

		if (n > 0 && below + n >= want)
			return low + (high - low) * (want - below) / n;
		below += n;
	}
	return 0;
}

/* --- in SQL --- */

static void hist_sum(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	uint64_t counts[HIST_WIDE] = {0};
	struct strbuf s = STRBUF_INIT;

	for (int i = 0; i < argc; i++) {
		const char *text = (const char *)sqlite3_value_text(argv[i]);

		if (text)
			(void)add(counts, HIST_WIDE, text, (size_t)sqlite3_value_bytes(argv[i]));
	}
	if (encode(counts, HIST_WIDE, &s))
		sqlite3_result_text(ctx, s.buf, (int)s.len, SQLITE_TRANSIENT);
	else
		sqlite3_result_null(ctx);
	strbuf_release(&s);
}

int hist_register(sqlite3 *db)
{
	return sqlite3_create_function(db, "hist_sum", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, hist_sum, NULL, NULL);
}
