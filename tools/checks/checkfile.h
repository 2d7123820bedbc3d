/* SPDX-License-Identifier: Apache-2.0 */
/* checkfile: one check, as defined by its file (tools/checks/queries/README.md). */
#ifndef SONDE_TOOLS_CHECKFILE_H
#define SONDE_TOOLS_CHECKFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define CHECKFILE_WINDOW_MIN 1440 /* minutes that a check may read at most */
#define CHECKFILE_BYTES      65536

#define CHECK_TEXT  200
#define CHECK_BINDS 8

/* Parameters of a query in addition to :from, :to, :threshold, :for and :subject. */
struct check_bind {
	char name[24], text[CHECK_TEXT];
	double number;
	bool is_text;
};

struct checkfile {
	char name[64], summary[200], unit[24], threshold_is[120], next[300], needs[24];
	bool critical, own; /* own: from a checks.d folder */
	bool lines;         /* whose lines of code made memory grow belongs to each result's text */
	double threshold;
	int for_min, window_min;
	struct check_bind binds[CHECK_BINDS];
	size_t n_binds;
	char *sql; /* start of the first of its two statements */
};

/* Pure. `name`: the file name without .sql; `origin` is for errors: "/etc/sonde/checks.d/x.sql".
 * EXIT_USAGE with the line. */
int checkfile_parse(const char *name, const char *origin, const char *text, size_t len,
		    struct checkfile *out, struct err *e);
void checkfile_release(struct checkfile *c);

struct checkfiles {
	struct checkfile *rows;
	size_t n; /* sorted by name */
};
/* The shipped checks, and those of `dir` (NAME.sql, and NAME.slo: checkslo.h), which replace
 * shipped ones of the same name. `dir` NULL: checks.d below $SONDE_CONFIG or /etc/sonde, if it
 * exists; a folder given by name must exist. */
int checkfiles_read(const char *dir, struct checkfiles *out, struct err *e);
void checkfiles_release(struct checkfiles *c);

#endif
