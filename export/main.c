/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-export: metrics of the store in the formats of other systems. It only reads the store; its
 * state is in another folder. */
#include <errno.h>
#include <locale.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/command.h"
#include "export/totals.h"
#include "schema/base/array.h"
#include "schema/base/cli/options.h"
#include "schema/base/log.h"
#include "schema/store/read/reader.h"

static const struct program PROGRAM = {
	.name = "sonde-export",
	.usage = "COMMAND [options]",
	.about = "What the store has, in the forms of other engines. It only reads the store.\n"
		 "  metrics            Prometheus' metrics, on standard output\n"
		 "  status             how many series there are, since when they count",
	.words = 1,
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "the store's folder, or a file of it (else as sonde finds it)", OPTION_AT(struct command_args, store)},
	{"state", 0, OPTION_STRING, "DIR", "where to keep counters between runs", OPTION_AT(struct command_args, state)},
	{"openmetrics", 0, OPTION_FLAG, NULL, "metrics: in OpenMetrics' format", OPTION_AT(struct command_args, openmetrics)},
	{"series", 0, OPTION_UINT, "N", "metrics: limit of series; above it new ones are counted as ~other (default 5000)",
	 OPTION_AT(struct command_args, max_series), .min = 1, .max = 1000000},
	{"json", 0, OPTION_FLAG, NULL, "status: as JSON", OPTION_AT(struct command_args, json)},
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
