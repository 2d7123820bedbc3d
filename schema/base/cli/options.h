/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: the table that a program's (or verb's) command line is parsed by, and its help made
 * from. One source, no drift.
 *
 * Values go into a struct of the program's own, which holds what is true where an option is not
 * given; OPTION_AT says where in it. Options are long; a few have a short letter too.
 * `--name=value`, `--name value`, `-n5`, `-n 5`, bundles of flags (`-qj`), a unique prefix of a
 * long name, and `--` (the rest are words) are understood, options and words in any order. Strings
 * are borrowed from argv.
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
	OPTION_UINT, /* uint64_t, or what `size` says: uint32_t, int, uint8_t; decimal, from min to
			max */
	OPTION_DURATION, /* int64_t, ns: 10s, 15m, 1h30m; a bare number is seconds; > 0, from min to
			    max */
	OPTION_LIST,     /* struct option_list: given again and again, at most `max` times */
	OPTION_BYTES,    /* uint64_t: 64M, 1.5GiB, 4096; > 0 */
	OPTION_WORD,     /* const char *: one of those that `arg` lists ("full|masked|none") */
	OPTION_ENUM,     /* int or bool: which of them, counted from 0 */
	OPTION_NUMBERS,  /* struct option_numbers: as OPTION_UINT, given again and again */
	OPTION_SET /* int, which becomes `min`; takes no value: of several such options the last one
		      holds */
};

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
	const char *arg;   /* how help calls the value: "FILE"; NULL where none is taken */
	const char *help;  /* one line; NULL: not shown (it stands in a shared line of the help) */
	size_t offset;     /* into the struct of the table */
	size_t size;       /* of the field; 0: what the type says first */
	uint64_t min, max; /* what a number, a duration (ns), or how often it is given, may be; max
			      0: anything */
	bool zero;         /* of durations and bytes: a 0 is taken too */
};

#define OPTION_AT(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

/* A table and the struct that it fills. */
struct option_set {
	const struct option *table; /* NULL: none */
	void *values;
};

struct option_words { /* what is no option, in order; argv's own strings */
	char **items; /* ended by NULL; the array is freed by options_release */
	size_t n;
	size_t n_before_dashes; /* of them, those before `--` */
	bool dashes;            /* `--` was there */
};

/* argv[0] is skipped. EXIT_USAGE with did-you-mean. Release in any case. */
int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct option_words *words, struct err *e);
void options_release(const struct option_set *sets, size_t n_sets, struct option_words *words);
/* One line each, of those that have a help. */
void options_print(const struct option *table, FILE *out);

/* A program, and what its --help says around the options. Each has --help (-h) and --version (-V)
 * beside its own. */
struct program {
	const char *name;  /* "sonde-prune" */
	const char *usage; /* after the name: "[options] FILE" */
	const char *about; /* lines, without the last line end */
	const char *more;  /* the same, after the options; NULL: none */
	size_t words;      /* how many words it takes at most */
	bool command;      /* and behind `--` a command of any number */
};

#define PROGRAM_SETS 6

/* 0; 1: help or the version is printed, and there is nothing more to do; or -EINVAL, with
 * EXIT_USAGE and a fix. `words` may be NULL where there are none. Release (the same sets) in any
 * case. */
int program_options(const struct program *p, int argc, char **argv, const struct option_set *sets,
		    size_t n_sets, struct option_words *words, struct err *e);
/* For the end of main: the exit code of `rc`, whose error is reported as `prog`'s; a standard
 * output that could not be written is one, too. */
int program_end(const char *prog, int rc, struct err *e);

#endif
