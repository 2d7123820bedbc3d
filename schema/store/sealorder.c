/* SPDX-License-Identifier: Apache-2.0 */
/* sealorder: see the header. */
#include "schema/store/sealorder.h"

#include <sqlite3.h>

#include "schema/store/packing.h"
#include "schema/store/packorder.h"
#include "schema/store/sealsamples.h"

static int renumber_samples(sqlite3 *day, const struct packorder *o, int64_t t0)
{
	struct sealsamples x = {0};
	int rc = sealsamples_load(&x, day, INT64_MIN, INT64_MAX);

	for (size_t i = 0; i < x.n; i++)
		x.rows[i].series = packorder_number(o, PACKORDER_SERIES, x.rows[i].series);
	if (rc == SQLITE_OK && x.n)
		rc = sealsamples_replace(&x, day, INT64_MIN, INT64_MAX, t0);
	sealsamples_release(&x);
	return rc;
}

int sealorder_pack(sqlite3 *day, int64_t t0)
{
	struct packorder o = {0};
	int rc = packorder_load(day, &o);

	if (rc == SQLITE_OK)
		rc = renumber_samples(day, &o, t0);
	if (rc == SQLITE_OK)
		rc = packing_pack(day, &o);
	packorder_release(&o);
	return rc;
}
