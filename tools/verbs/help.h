/* SPDX-License-Identifier: Apache-2.0 */
/* help: texts made from the option tables: for one verb, for all verbs, and for the shared
 * grammars. Each has at most 24 lines. */
#ifndef SONDE_TOOLS_HELP_H
#define SONDE_TOOLS_HELP_H

#include <stdio.h>

#include "tools/cli/verb.h"

/* Options of every verb. */
struct common_args {
	bool help, quiet, wide, json, ndjson, schema, no_pager;
	const char *color, *with;
	struct option_list store; /* as typed, see tools/main.c */
};
extern const struct option COMMON_OPTIONS[]; /* --help --quiet --color --wide --no-pager */
extern const struct option STORE_OPTIONS[];  /* --store */
extern const struct option JSON_OPTIONS[];   /* --json --ndjson --schema */
/* The same and --with, for verbs whose JSON has lists that must be asked for (jsonshape_lists). */
extern const struct option JSON_LIST_OPTIONS[];
/* Which of the two a verb with JSON has. */
const struct option *verb_json_options(const struct verb *v);

void help_verb(const struct verb *v, FILE *out);
void help_all(FILE *out);
/* Prints the verbs (NULL: all) with usage, examples and options as envelope "sonde.help/1". 0 or
 * -EIO. */
int help_json(const struct verb *only, FILE *out);
/* topic: "range" or "filters". -ENOENT: unknown topic. */
int help_topic(const char *topic, FILE *out);
/* `sonde` without a verb: what it is, four examples, the store, and whether a recorder is
 * running. */
void help_summary(const char *store, FILE *out);

#endif
