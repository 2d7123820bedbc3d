/* SPDX-License-Identifier: Apache-2.0 */
#include "export/command.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "export/expose.h"
#include "export/source.h"
#include "export/state.h"
#include "export/update.h"
#include "schema/base/clock.h"

static int updated(const struct command_args *a, struct totals *t, struct update_store *about,
		   struct err *e)
{
	struct state state = {.lock_fd = -1};
	int64_t settled[TOTALS_SOURCES], begun = 0;
	char dir[PATH_MAX];
	int rc = state_folder(a->state, dir, e);

	if (!rc)
		rc = state_open(&state, dir, a->store, t, e);
	begun = t->begun_ts;
	memcpy(settled, t->settled_ts, sizeof(settled));
	if (!rc)
		rc = update_totals(t, a->store, clock_utc_ns() / NSEC_PER_SEC, about, e);
	if (!rc &&
	    (begun != t->begun_ts || t->clamped || memcmp(settled, t->settled_ts, sizeof(settled))))
		rc = state_save(&state, t, e);
	state_close(&state);
	return rc;
}

int command_metrics(const struct command_args *a, struct err *e)
{
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct update_store about = {0};
	struct totals t;
	int rc;

	totals_init(&t, a->max_series);
	rc = updated(a, &t, &about, e);
	if (!rc) {
		expose(&t, &about, a->openmetrics, &out);
		fwrite(strbuf_str(&out), 1, out.len, stdout);
	}
	totals_release(&t);
	return rc;
}

static void status_json(struct totals *t, size_t series)
{
	json_t *sources = json_object();
	json_t *out =
		json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "schema", "sonde.export/1",
			  "series", (json_int_t)series, "series_limit", (json_int_t)t->max_series,
			  "begun_ts", (json_int_t)t->begun_ts, "missed_s", (json_int_t)t->missed_s,
			  "folded_values", (json_int_t)t->folded, "settled_ts", sources);

	for (size_t i = 0; i < source_count(); i++)
		json_object_set_new(sources, source_name(i), json_integer(t->settled_ts[i]));
	json_dumpf(out, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(out);
}

static void status_text(struct totals *t, size_t series, int64_t now_ts)
{
	int64_t oldest = INT64_MAX;
	const char *source = "";

	for (size_t i = 0; i < source_count(); i++)
		if (t->settled_ts[i] < oldest) {
			oldest = t->settled_ts[i];
			source = source_name(i);
		}
	if (!t->begun_ts) {
		puts("metrics    not requested yet");
		return;
	}
	printf("metrics    %zu series, of %zu at most; %" PRIu64 " values under " TOTALS_OTHER
	       " or left out\n",
	       series, t->max_series, t->folded);
	printf("counting   for %" PRId64 " s; everything but the last %" PRId64
	       " s is settled (%s is furthest behind)\n",
	       now_ts - t->begun_ts, now_ts - oldest, source);
	printf("missed     %" PRIu64 " s at most, removed from the store before it was counted\n",
	       t->missed_s);
}

int command_status(const struct command_args *a, struct err *e)
{
	struct state state = {.lock_fd = -1};
	char dir[PATH_MAX];
	struct totals t;
	int rc = state_folder(a->state, dir, e);

	totals_init(&t, a->max_series);
	if (!rc)
		rc = state_open(&state, dir, a->store, &t, e);
	if (!rc && a->json)
		status_json(&t, expose_count(&t));
	else if (!rc)
		status_text(&t, expose_count(&t), clock_utc_ns() / NSEC_PER_SEC);
	state_close(&state);
	totals_release(&t);
	return rc;
}
