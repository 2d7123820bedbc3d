/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/select/unstored.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/store/read/reader.h"
#include "tools/print/when.h"
#include "tools/select/askrows.h"

static void take_any(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

static bool any_recording(const struct selection *sel)
{
	bool any = false;
	const struct askrows_part part = {
		"SELECT 1 FROM run WHERE to_ns / 1000000000 >= ?1 AND from_ns / 1000000000 <= ?2 LIMIT 1",
		take_any, &any};

	return askrows_each(sel, NULL, &part, 1, NULL) || any;
}

/* "; the store holds 02:10:00 to 03:05:12". */
static void tell_span(const struct selection *sel, char *out, size_t size)
{
	cleanup_free struct store_segment_info *all = NULL;
	int64_t from = 0, to = 0, now = clock_utc_ns();
	char a[32], b[32];
	size_t n = 0;

	out[0] = '\0';
	if (store_segments(sel->store, 0, INT64_MAX, &all, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		if (all[i].from_ns && (!from || all[i].from_ns < from))
			from = all[i].from_ns;
		if (all[i].to_ns > to)
			to = all[i].to_ns;
	}
	if (from)
		snprintf(out, size, "; the store holds %s to %s",
			 when_local(from, now, a, sizeof(a)), when_local(to, now, b, sizeof(b)));
}

void unstored_say(const struct select_args *a, const char *store, struct err *e)
{
	const struct select_args range = {
		.last_ns = a->last_ns, .from = a->from, .to = a->to, .at = a->at};
	struct selection *sel = NULL;
	char there[96];
	bool future;

	if (!select_has_range(a) || a->rec)
		return;
	if (select_new(&range, store, NULL, 0, true, &sel, NULL))
		return;
	future = sel->from_ns > clock_utc_ns();
	if ((future || e->code != UNSTORED_TOLD) && !any_recording(sel)) {
		tell_span(sel, there, sizeof(there));
		err_set(e, -ENODATA, EXIT_NOTHING,
			future ? "%s is in the future%s" : "nothing is stored of %s%s", sel->range,
			there);
		err_fix(e, "sonde status (what was recorded when)    sonde help range");
	}
	select_free(sel);
}
