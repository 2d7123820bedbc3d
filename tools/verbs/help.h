/* SPDX-License-Identifier: Apache-2.0 */
/* help: texts made from the tables: of one verb, of all, of the shared grammars. At most 24 lines
 * each. */
#ifndef SONDE_TOOLS_HELP_H
#define SONDE_TOOLS_HELP_H

#include <stdio.h>

#include "tools/cli/verb.h"

/* Options that every verb takes. */
struct common_args {
	bool help, quiet, wide, json, no_pager;
	const char *color;
	struct option_list store; /* as typed: tools/cli/stores.h */
};
extern const struct option COMMON_OPTIONS[]; /* --help --quiet --color --wide --no-pager */
extern const struct option STORE_OPTIONS[];  /* --store */
extern const struct option JSON_OPTIONS[];   /* --json */

void help_verb(const struct verb *v, FILE *out);
void help_all(FILE *out);
/* The verbs (NULL: all of them) with usage, examples and options: the envelope "sonde.help/1". 0 or
 * -EIO. */
int help_json(const struct verb *only, FILE *out);
/* "range", "filters". -ENOENT: no such topic. */
int help_topic(const char *topic, FILE *out);
/* `sonde` alone: what it is, four examples, the store, whether something records. */
void help_summary(const char *store, FILE *out);

#endif
