/* SPDX-License-Identifier: Apache-2.0 */
/* checkfile: one check, as its file says it (tools/checks/queries/README.md). */
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

/* What a query has beside :from, :to, :threshold, :for and :subject. */
struct check_bind {
	char name[24], text[CHECK_TEXT];
	double number;
	bool is_text;
};

struct checkfile {
	char name[64], summary[200], unit[24], threshold_is[120], next[300], needs[24];
	bool critical, own; /* own: of a checks.d folder */
	double threshold;
	int for_min, window_min;
	struct check_bind binds[CHECK_BINDS];
	size_t n_binds;
	char *sql; /* of its two statements the first begins here */
};

/* Pure. `name`: the file's, without .sql; `origin` is for the error: "/etc/sonde/checks.d/x.sql".
 * EXIT_USAGE with the line. */
int checkfile_parse(const char *name, const char *origin, const char *text, size_t len,
		    struct checkfile *out, struct err *e);
void checkfile_release(struct checkfile *c);

struct checkfiles {
	struct checkfile *rows;
	size_t n; /* by name */
};
/* Those that ship, and those of `dir` (NAME.sql, and NAME.slo: checkslo.h), which take the place of
 * one of the same name. `dir` NULL: checks.d below $SONDE_CONFIG or /etc/sonde, if it is there; one
 * that is named has to be. */
int checkfiles_read(const char *dir, struct checkfiles *out, struct err *e);
void checkfiles_release(struct checkfiles *c);

#endif
