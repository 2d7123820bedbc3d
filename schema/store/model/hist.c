/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/model/hist.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

unsigned hist_step(uint64_t value)
{
	unsigned top = value ? 63u - (unsigned)__builtin_clzll(value) : 0,
		 shift = top > 3 ? top - 3 : 0;

	return shift * 8 + (unsigned)(value >> shift);
}

void hist_release(struct hist *h)
{
	free(h->count);
	*h = (struct hist){0};
}

void hist_free(struct hist *h)
{
	if (h)
		hist_release(h);
	free(h);
}

/* Has these slots from now on, which there are. */
static void reach(struct hist *h, unsigned first, unsigned end)
{
	unsigned from = h->n && h->first < first ? h->first : first,
		 to = h->n && h->first + h->n > end ? h->first + h->n : end;
	uint64_t *count;

	if (h->n && from == h->first && to == (unsigned)h->first + h->n)
		return;
	count = mem_array(to - from, sizeof(*count));
	if (h->n)
		memcpy(count + (h->first - from), h->count, hist_bytes(h));
	free(h->count);
	*h = (struct hist){.count = count, .first = (uint16_t)from, .n = (uint16_t)(to - from)};
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > INT64_MAX || a > INT64_MAX - b ? INT64_MAX : a + b;
}

void hist_add(struct hist *h, unsigned first, const uint32_t *counts, size_t n)
{
	if (first >= HIST_SLOTS)
		return;
	n = n < HIST_SLOTS - first ? n : HIST_SLOTS - first;
	for (; n && !*counts; n--, counts++)
		first++;
	while (n && !counts[n - 1])
		n--;
	if (!n)
		return;
	reach(h, first, first + (unsigned)n);
	for (size_t i = 0; i < n; i++)
		h->count[first - h->first + i] = plus(h->count[first - h->first + i], counts[i]);
}

void hist_merge(struct hist *h, const struct hist *more)
{
	if (!more->n)
		return;
	reach(h, more->first, more->first + more->n);
	for (unsigned i = 0; i < more->n; i++)
		h->count[more->first - h->first + i] =
			plus(h->count[more->first - h->first + i], more->count[i]);
}

uint64_t hist_total(const struct hist *h)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < h->n; i++)
		sum = plus(sum, h->count[i]);
	return sum;
}

/* --- the stored form --- */

bool hist_encode(const struct hist *h, unsigned base, struct strbuf *out)
{
	unsigned first = 0, last = h->n;

	while (first < last && !h->count[first])
		first++;
	while (last > first && !h->count[last - 1])
		last--;
	if (first == last)
		return false;
	strbuf_addch(out, '[');
	strbuf_addu(out, h->first + first - base);
	for (unsigned i = first; i < last; i++) {
		strbuf_addch(out, ',');
		strbuf_addu(out, h->count[i]);
	}
	strbuf_addch(out, ']');
	return true;
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

static unsigned commas(const struct hist_text *t)
{
	unsigned n = 0;

	for (const char *p = t->at; p < t->end && n <= HIST_SLOTS; p++)
		n += *p == ',';
	return n;
}

bool hist_read(struct hist *h, const char *text, size_t len, unsigned base)
{
	struct hist_text t = {text, text + len};
	uint64_t slot, n;
	unsigned counts;

	if (!take(&t, '[') || !take_number(&t, &slot) || slot >= HIST_SLOTS - base)
		return false;
	slot += base;
	counts = commas(&t);
	if (counts > HIST_SLOTS - slot)
		return false;
	if (counts)
		reach(h, (unsigned)slot, (unsigned)slot + counts);
	for (; take(&t, ','); slot++) {
		if (!take_number(&t, &n))
			return false;
		h->count[slot - h->first] = plus(h->count[slot - h->first], n);
	}
	if (!take(&t, ']'))
		return false;
	skip_blanks(&t);
	return t.at == t.end;
}

/* --- quantiles --- */

/* Where step s begins; of the one past the last, where that ends. */
static double low_of(unsigned s)
{
	return s < 8 ? s : (double)(8 + s % 8) * (double)(1ull << (s / 8 - 1));
}

static double counted(const struct hist *h, unsigned slot)
{
	return slot >= h->first && slot - h->first < h->n ? (double)h->count[slot - h->first] : 0;
}

/* What lies in a step: its own, and what it takes of the power of two that has it, as if that
 * spread evenly. */
static double in_step(const struct hist *h, unsigned s)
{
	unsigned power = s < 2 ? 0 :
			 s < 4 ? 1 :
			 s < 8 ? 2 :
				 s / 8 + 2,
		 steps = s < 4 ? 2 :
			 s < 8 ? 4 :
				 8;

	return counted(h, HIST_FINE + s) + (power < HIST_FINE ? counted(h, power) / steps : 0);
}

static bool is_step(const struct hist *h, unsigned s, double n)
{
	return counted(h, HIST_FINE + s) >= n;
}

double hist_quantile(const struct hist *h, double q)
{
	double total = 0, below = 0, want;

	for (unsigned i = 0; i < h->n; i++)
		total += (double)h->count[i];
	want = total * (q < 0 ? 0 : q > 1 ? 1 : q);
	for (unsigned s = 0; s < HIST_STEPS; s++) {
		double low = low_of(s), n = in_step(h, s);

		if (n > 0 && below + n >= want)
			return low + (low_of(s + 1) - low) *
					     (is_step(h, s, n) ? 0.5 : (want - below) / n);
		below += n;
	}
	return 0;
}

/* --- in SQL --- */

static void hist_sum(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	struct hist h = {0};
	struct strbuf s = STRBUF_INIT;

	for (int i = 0; i < argc; i++) {
		const char *text = (const char *)sqlite3_value_text(argv[i]);

		if (text)
			(void)hist_read(&h, text, (size_t)sqlite3_value_bytes(argv[i]), 0);
	}
	if (hist_encode(&h, 0, &s))
		sqlite3_result_text(ctx, s.buf, (int)s.len, SQLITE_TRANSIENT);
	else
		sqlite3_result_null(ctx);
	strbuf_release(&s);
	hist_release(&h);
}

int hist_register(sqlite3 *db)
{
	return sqlite3_create_function(db, "hist_sum", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
				       hist_sum, NULL, NULL);
}
