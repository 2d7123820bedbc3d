/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who: the answer of `sonde ps` and `sonde containers`: who ran in a window, also long ago and
 * ended since, with the CPU that each used and the function that it was in most. As a table or as
 * JSON.
 */
#ifndef SONDE_TOOLS_PROCESS_REPORT_H
#define SONDE_TOOLS_PROCESS_REPORT_H

#include "tools/cli/verb.h"
#include "tools/print/table.h"
#include "tools/processes/process_rows.h"

struct process_report_args {
	uint64_t rows;
	const char *sort;
	struct json_t *running; /* what had no answer yet, for JSON; NULL: the verb does not say.
				   Borrowed */
	size_t running_total;
};
extern const struct option PROCESS_REPORT_OPTIONS[], PROCESS_REPORT_CONTAINER_OPTIONS[];

/* The table of `sonde ps`: the first n rows; the caller's (table_free). */
struct table *process_report_table(const struct fold *f, const struct process_rows *p, size_t n);
int process_report_run(struct verb_call *call, enum process_rows_by by, struct err *e);

#endif
