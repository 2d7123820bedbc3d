/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks: runs each check's query for a time, and again for an hour before it: a subject that
 * failed then and passes now has recovered. What must fail for some minutes, and does so for less,
 * is pending: it is no failure and no notification is sent, but a host that is in trouble since a
 * minute is not said to be well. The same store and the same time give the same answer.
 */
#ifndef SONDE_TOOLS_CHECKS_H
#define SONDE_TOOLS_CHECKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/checks/checkfile.h"

#define CHECKS_BEFORE_S    3600
#define CHECKS_EVIDENCE    10
#define CHECKS_PENDING_MIN 10 /* of checks that must fail for longer nothing is pending */

enum check_state { CHECK_FINE, CHECK_BAD, CHECK_PENDING, CHECK_RECOVERED, CHECK_UNMEASURED };

struct check_result {
	const struct checkfile *check;
	enum check_state state;
	char *subject, *text; /* "": none */
	double value;
	int64_t to_s;     /* when it was checked */
	int lasted_min;   /* pending: for how long, of check->for_min */
	json_t *evidence; /* rows, an array of objects; NULL: none */
};

struct check_results {
	struct check_result *rows;
	size_t n; /* sorted by check, then subject; a check that passes or is not measured has one
		     row without a subject */
	size_t n_checks, bad, critical, pending, recovered, unmeasured;
	int64_t to_s;
};

/* `to_s` is a multiple of 10. If SQLite refuses a query: EXIT_USAGE for the user's own check,
 * otherwise EXIT_RUNTIME. */
int checks_run(const char *store, const struct checkfiles *checks, int64_t to_s,
	       struct check_results *out, struct err *e);
/* The same without what recovered, which takes half as long. */
int checks_run_now(const char *store, const struct checkfiles *checks, int64_t to_s,
		   struct check_results *out, struct err *e);
void check_results_release(struct check_results *r);
const char *check_state_name(enum check_state s); /* of JSON: "fine", "bad", ... */
/* "memory-limit: web, 93.1 % (480 of 512 MiB)" */
void check_say(const struct check_result *r, struct strbuf *out);
/* The command that shows more, quoted for a shell, of that time if it is past; "" if the check has
 * none. */
void check_next(const struct check_result *r, struct strbuf *out);

#endif
