/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: the table that a program's (or verb's) command line is parsed by, and its help made
 * from. One source, no drift.
 *
 * Values go into a struct of the program's own, which holds what is true where an option is not
 * given; OPTION_AT says where in it. Options are long; a few have a short letter too.
 * `--name=value`, `--name value`, `-n5`, `-n 5`, bundles of flags (`-qj`), a unique prefix of a
 * long name, and `--` (the rest are words) are accepted, with options and words in any order.
 * Strings are borrowed from argv.
 */
#ifndef SONDE_BASE_OPTIONS_H
#define SONDE_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"

enum option_type {
	OPTION_FLAG,   /* bool */
	OPTION_STRING, /* const char * */
	OPTION_UINT,   /* uint64_t, or by `size` uint32_t, int, uint8_t; decimal, from min to max */
	OPTION_MOST, /* uint64_t: at most this many; 0 on the command line is all (OPTION_ALL), 0 in
			the struct: not given */
	OPTION_DURATION, /* int64_t, ns: 10s, 15m, 1h30m; > 0, from min to
			    max */
	OPTION_LIST,     /* struct option_list: may be given up to `max` times */
	OPTION_BYTES,    /* uint64_t: 64M, 1.5GiB, 4096; > 0 */
	OPTION_WORD,     /* const char *: one of those that `arg` lists ("full|masked|none") */
	OPTION_ENUM,     /* int or bool: which of them, counted from 0 */
	OPTION_NUMBERS,  /* struct option_numbers: as OPTION_UINT, may be repeated */
	OPTION_SET /* int, which becomes `min`; takes no value: the last of several such options
		      wins */
};

/* More than there is of anything that is counted, and still an int. */
#define OPTION_ALL 1000000000

struct option_list {
	const char **items; /* the array is freed by options_release */
	size_t n, cap;
};

struct option_numbers {
	uint64_t *items; /* freed by options_release */
	size_t n, cap;
};

struct option {
	const char *name; /* long, without dashes; NULL ends a table */
	char letter;      /* 0: none */
	enum option_type type;
	const char *arg; /* the value's name in the help: "FILE"; NULL: the option takes no value */
	const char *help;  /* one line; NULL: not listed (a shared line of the help names it) */
	size_t offset;     /* into the struct of the table */
	size_t size;       /* of the field; 0: the first type listed above */
	uint64_t min, max; /* limits of a number, a duration (ns), or of the count; max 0: none */
	bool zero;         /* of durations and bytes: 0 is allowed too */
};

#define OPTION_AT(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* A table and the struct that it fills. */
struct option_set {
	const struct option *table; /* NULL: none */
	void *values;
};

struct option_words { /* words that are no option, in order; argv's own strings */
	char **items; /* ended by NULL; the array is freed by options_release */
	size_t n;
	size_t n_before_dashes; /* the number of those before `--` */
	bool dashes;            /* `--` was there */
};

/* argv[0] is skipped. EXIT_USAGE with did-you-mean. Release in any case. */
int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct option_words *words, struct err *e);
void options_release(const struct option_set *sets, size_t n_sets, struct option_words *words);
/* One line for each option that has a help text. */
void options_print(const struct option *table, FILE *out);

/* A program, and the text of its --help around the options. Each has --help (-h) and --version (-V)
 * besides its own. */
struct program {
	const char *name;  /* "sonde-prune" */
	const char *usage; /* after the name: "[options] FILE" */
	const char *about; /* lines, without the last line end */
	const char *more;  /* the same, after the options; NULL: none */
	size_t words;      /* the most words it takes */
	bool command;      /* and after `--` a command of any length */
};

#define PROGRAM_SETS 6

/* 0; 1: it printed the help or the version, so the program is done; or -EINVAL, with EXIT_USAGE and
 * a fix. `words` may be NULL. Release the same sets in any case. */
int program_options(const struct program *p, int argc, char **argv, const struct option_set *sets,
		    size_t n_sets, struct option_words *words, struct err *e);
/* For the end of main: reports the error of `rc` under the name `prog` and returns its exit code.
 * Also fails if standard output could not be written. */
int program_end(const char *prog, int rc, struct err *e);
/* Flushes standard output. 0; -EIO, with EXIT_RUNTIME, where some of it could not be written, or
 * the caller found that already (`failed`). */
int program_flush(bool failed, struct err *e);

#endif
