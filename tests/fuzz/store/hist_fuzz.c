/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/store/model/hist.c
 *
 * Any text is a histogram or none; what one is read as is written and read back the same, and
 * SQLite's own JSON reader agrees with each number.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/store/model/hist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sqlite3_stmt *reader(void)
{
	static sqlite3_stmt *st;
	sqlite3 *db;

	if (!st && (sqlite3_open(":memory:", &db) || hist_register(db) ||
		    sqlite3_prepare_v2(db, "SELECT value, hist_sum(?1, NULL) FROM json_each(?1)",
				       -1, &st, NULL)))
		abort();
	return st;
}

/* SQLite reads the same list: the first number is the slot, the others are its counts. */
static void check_sqlite(const char *text, size_t len, const struct hist *h)
{
	sqlite3_stmt *st = reader();
	int64_t slot = -1;

	sqlite3_bind_text(st, 1, text, (int)len, SQLITE_STATIC);
	while (sqlite3_step(st) == SQLITE_ROW) {
		int64_t v = sqlite3_column_int64(st, 0);

		if (slot < 0)
			slot = v;
		else if (slot < h->first || slot - h->first >= h->n ||
			 h->count[slot++ - h->first] != (uint64_t)v)
			abort();
	}
	if (slot < 0)
		abort();
	sqlite3_reset(st);
}

static bool strict(const uint8_t *data,
		   size_t size) /* JSON has no leading zeros; hist reads them */
{
	for (size_t i = 0; i + 1 < size; i++)
		if (data[i] == '0' && data[i + 1] >= '0' && data[i + 1] <= '9' &&
		    (!i || data[i - 1] < '0' || data[i - 1] > '9'))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hist h = {0}, again = {0};
	struct strbuf s = STRBUF_INIT;
	double low, high;

	if (size > 4096 || !hist_read(&h, (const char *)data, size, 0)) {
		hist_release(&h);
		return 0;
	}
	if (strict(data, size))
		check_sqlite((const char *)data, size, &h);
	if (hist_encode(&h, 0, &s)) {
		if (!hist_read(&again, s.buf, s.len, 0) || again.first < h.first ||
		    again.first + again.n > h.first + h.n ||
		    memcmp(h.count + (again.first - h.first), again.count, hist_bytes(&again)))
			abort();
	}
	strbuf_release(&s);
	low = hist_quantile(&h, 0.1);
	high = hist_quantile(&h, 0.9);
	hist_release(&h);
	hist_release(&again);
	if (!(low >= 0) || !(high >= low))
		abort();
	return 0;
}
