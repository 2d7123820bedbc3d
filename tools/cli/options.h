/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: the table that a verb's command line is parsed by, and its help generated from. One source, no drift.
 *
 * Values go into a struct of the verb's own, at `offset`; the struct is zeroed first, so 0 / NULL / false is "not
 * given". Flags are long; a few have a short letter too. `--name=value`, `--name value`, `-n5`, `-n 5`, bundles of
 * flags (`-qj`), a unique prefix of a long name, and `--` (the rest are words) are understood, options and words in
 * any order. Strings are borrowed from argv.
 */
#ifndef SONDE_TOOLS_OPTIONS_H
#define SONDE_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

enum option_type {
	OPTION_FLAG,     /* bool */
	OPTION_STRING,   /* const char * */
	OPTION_UINT,     /* uint64_t; decimal */
	OPTION_DURATION, /* int64_t, ns: 10s, 15m, 1h30m; a bare number is seconds; > 0 */
	OPTION_LIST      /* struct option_list: given again and again */
};

struct option_list {
	const char **items; /* the array is freed by options_release */
	size_t n, cap;
};

struct option {
	const char *name;  /* long, without dashes; NULL ends a table */
	char letter;       /* 0: none */
	enum option_type type;
	const char *arg;   /* how help calls the value: "FILE"; NULL for flags */
	const char *help;  /* one line; NULL: not shown (it stands in a shared line of the help) */
	size_t offset;     /* into the struct of the table */
};

/* A table and the struct that it fills. */
struct option_set {
	const struct option *table; /* NULL: none */
	void *values;
};

struct option_words {       /* what is no option, in order; argv's own strings */
	char **items;       /* the array is freed by options_release */
	size_t n;
	size_t n_before_dashes; /* of them, those before `--` */
	bool dashes;        /* `--` was there */
};

/* Options may stop at the first word (`stop_at_word`): for a verb before its own options. argv[0] is skipped.
 * EXIT_USAGE with did-you-mean. Release in any case. */
int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets, struct option_words *words,
		  struct err *e);
void options_release(const struct option_set *sets, size_t n_sets, struct option_words *words);

#endif
