/* SPDX-License-Identifier: Apache-2.0 */
/* report: what a run of sonde-symbolize gained, by file, for people and as JSON. */
#ifndef SONDE_SYMBOLIZE_REPORT_H
#define SONDE_SYMBOLIZE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/write/symbolizer.h"

struct report_row {
	char *path, *build_id;
	bool seen;
	uint64_t unnamed, lineless; /* frames before */
	struct symbolizer_gain gain;
	const char *reason; /* borrowed; "" if its index has lines */
};

struct report {
	struct report_row *rows;
	size_t n, cap;
};

/* The row of this file; borrowed until the next call. */
struct report_row *report_row(struct report *r, const char *path, const char *build_id);
void report_release(struct report *r);

/* What is being read now, on a terminal's stderr; NULL: done. */
void report_progress(const char *path);
/* `number`: rows at most, 0: all. EXIT_NOTHING where something was missing and nothing was gained,
 * with the way on. */
int report_print(const struct report *r, uint64_t number, bool json, bool asked_servers,
		 unsigned fetched, struct err *e);

#endif
