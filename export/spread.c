/* SPDX-License-Identifier: Apache-2.0 */
#include "export/spread.h"

#include <sqlite3.h>

#include "schema/base/strbuf.h"
#include "schema/store/model/hist.h"

struct sums {
	struct hist all; /* of 8 steps and of powers of two alike */
	uint64_t n;
};

/* The power of two that a slot lies below the end of: its values are smaller than 2^that. */
static unsigned exponent(unsigned slot)
{
	return slot < HIST_FINE ? slot + 1 : slot < HIST_FINE + 8 ? 3 : (slot - HIST_FINE) / 8 + 3;
}

static bool read_more(struct hist *h, const char *text, size_t len, unsigned steps)
{
	return hist_read(h, text, len, steps == 8 ? HIST_FINE : 0);
}

static void count_below(const struct hist *h, uint64_t below[METRIC_BOUNDS])
{
	for (unsigned k = 0; k < h->n; k++)
		for (unsigned i = 0; i < METRIC_BOUNDS; i++)
			if (exponent(h->first + k) <= METRIC_BOUND_EXPONENT(i))
				below[i] += h->count[k];
}

bool spread_add(uint64_t below[METRIC_BOUNDS], const char *text, size_t len, unsigned steps)
{
	struct hist h = {0};
	bool is = read_more(&h, text, len, steps);

	count_below(&h, below);
	hist_release(&h);
	return is;
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
		read_more(&s->all, text, (size_t)sqlite3_value_bytes(v[0]),
			  (unsigned)sqlite3_value_int(v[1]));
}

static void final(sqlite3_context *ctx)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct sums *s = sqlite3_aggregate_context(ctx, 0);
	uint64_t below[METRIC_BOUNDS] = {0};

	if (!s)
		return;
	count_below(&s->all, below);
	hist_release(&s->all);
	for (unsigned i = 0; i < METRIC_BOUNDS; i++) {
		strbuf_addu(&out, below[i]);
		strbuf_addch(&out, ' ');
	}
	strbuf_addu(&out, s->n);
	sqlite3_result_text(ctx, strbuf_str(&out), (int)out.len, SQLITE_TRANSIENT);
}

int spread_register(sqlite3 *db)
{
	return sqlite3_create_function(db, "hist_all", 3,
				       SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
				       NULL, step, final);
}
