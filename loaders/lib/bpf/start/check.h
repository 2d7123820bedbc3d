/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: the list behind `--check`: what this host can and cannot do for a family, for people and
 * as JSON
 * ({"schema":"sonde.check/1","family","ok","absent","items":[{"name","state","text","fix"}]}).
 */
#ifndef SONDE_BPF_CHECK_H
#define SONDE_BPF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/base/err.h"

enum check_state {
	CHECK_OK,
	CHECK_WARN, /* works, with less */
	CHECK_FAIL, /* a capture is not possible */
	CHECK_OFF   /* missing, and not needed */
};

struct check_item {
	char *name, *text, *fix; /* fix: "" if none */
	enum check_state state;
};

struct check {
	struct check_item *items;
	size_t n, cap;
	enum sonde_exit exit; /* EXIT_OK, or that of the first failure */
	bool absent; /* this host lacks what the family records: nothing is wrong, but nothing is
			ready */
};

void check_release(struct check *c);
void check_add(struct check *c, const char *name, enum check_state state, const char *fix,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A failure with the text, fix and exit code of `e`. */
void check_add_err(struct check *c, const char *name, const struct err *e);

void check_print(const struct check *c, FILE *out);
void check_print_json(const struct check *c, const char *family, FILE *out);

#endif
