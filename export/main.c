/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-export: metrics of the store in the formats of other systems. It only reads the store; its
 * state is in another folder. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/expose.h"
#include "export/source.h"
#include "export/state.h"
#include "export/totals.h"
#include "export/update.h"
#include "schema/base/array.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/store/read/reader.h"

struct command_args {
	const char *store; /* never NULL */
	const char *state; /* NULL: where state_folder puts it */
	uint64_t max_series;
	bool openmetrics, json;
};

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

/* The metrics, on standard output. */
static int command_metrics(const struct command_args *a, struct err *e)
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

/* What is kept about them: how many series, since when, how far each source is. */
static int command_status(const struct command_args *a, struct err *e)
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

static const struct program PROGRAM = {
	.name = "sonde-export",
	.usage = "COMMAND [options]",
	.about =
		"Prints the store's data in the formats of other engines. It only reads the store.\n"
		"  metrics            Prometheus' metrics, on standard output\n"
		"  status             how many series there are, since when they count",
	.words = 1,
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "store folder, or one .db file of it (default: as for sonde)", OPTION_AT(struct command_args, store)},
	{"state", 0, OPTION_STRING, "DIR", "folder of the counters between runs", OPTION_AT(struct command_args, state)},
	{"openmetrics", 0, OPTION_FLAG, NULL, "metrics: in OpenMetrics' format", OPTION_AT(struct command_args, openmetrics)},
	{"series", 0, OPTION_UINT, "N", "metrics: limit of series; above it new ones are counted as ~other (default 5000)",
	 OPTION_AT(struct command_args, max_series), .min = 1, .max = 1000000},
	{"json", 0, OPTION_FLAG, NULL, "status: print JSON", OPTION_AT(struct command_args, json)},
	{0},
};
/* clang-format on */

static const struct {
	const char *name;
	int (*run)(const struct command_args *a, struct err *e);
} COMMANDS[] = {{"metrics", command_metrics}, {"status", command_status}};

static int run(const struct command_args *a, const struct option_words *w, struct err *e)
{
	for (size_t i = 0; w->n && i < ARRAY_SIZE(COMMANDS); i++)
		if (!strcmp(COMMANDS[i].name, w->items[0]))
			return COMMANDS[i].run(a, e);
	return err_set(e, -EINVAL, EXIT_USAGE,
		       w->n ? "there is no command '%.100s': metrics, status" :
			      "which command? metrics, status%s",
		       w->n ? w->items[0] : "");
}

int main(int argc, char **argv)
{
	struct command_args a = {.store = store_read_dir(), .max_series = TOTALS_SERIES};
	struct option_words words;
	struct err e = {0};
	int rc;

	setlocale(LC_CTYPE, "C.UTF-8");
	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &a}, 1, &words,
			     &e);
	if (!rc)
		rc = run(&a, &words, &e);
	options_release(NULL, 0, &words);
	return program_end("sonde", rc, &e);
}
