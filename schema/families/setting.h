/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setting: what sonde.conf says of one key. A setting `log-lines` is also the variable
 * SONDE_LOG_LINES and sonded's option --log-lines; its help is shown by `sonded --help`,
 * `sonde config show` and sonde.conf(5). Only the table is here: supervisor/config/confparse.c
 * checks values against it.
 */
#ifndef SONDE_FAMILIES_SETTING_H
#define SONDE_FAMILIES_SETTING_H

#include <stdbool.h>

enum setting_type {
	SETTING_WORD,     /* one of `words` */
	SETTING_LIST,     /* one of `words`, or some of `list` with commas */
	SETTING_NUMBER,   /* a decimal number from min to max */
	SETTING_FRACTION, /* the same, with a fraction */
	SETTING_DURATION, /* "90s", "14d" (schema/base/cli/quantity.h), min ns or longer */
	SETTING_BYTES,    /* "500M", "2G" */
	SETTING_PATH,     /* begins with / */
	SETTING_PATHS,    /* paths or patterns with blanks between, each begins with a slash */
	SETTING_RULES,    /* "container:web-* user:postgres" (loaders/lib/host/names/rules.h) */
	SETTING_PROBES,   /* "exec | x=syscall:openat(path=str $2)" (schema/probespec/spec.h) */
	SETTING_FAMILIES  /* names of families with commas */
};

struct setting {
	const char *name; /* in lower case, with dashes; NULL ends a table */
	enum setting_type type;
	const char *words, *list; /* "on|off" */
	double min, max;
	bool zero;            /* a duration or size may be 0: no limit */
	bool empty;           /* it may be empty */
	const char *fallback; /* what holds where nothing is set, as one would write it */
	const char *like;     /* ends the refusal "KEY 'VALUE' is not ..." */
	const char *help;     /* one line, without a full stop */
};

#endif
