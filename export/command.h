/* SPDX-License-Identifier: Apache-2.0 */
/* command: what sonde-export does, by its first word. */
#ifndef SONDE_EXPORT_COMMAND_H
#define SONDE_EXPORT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

struct command_args {
	const char *store; /* never NULL */
	const char *state; /* NULL: where state_folder puts it */
	uint64_t max_series;
	bool openmetrics, json;
};

/* The metrics, on standard output. */
int command_metrics(const struct command_args *a, struct err *e);
/* What is kept about them: how many series, since when, how far each source is. */
int command_status(const struct command_args *a, struct err *e);

#endif
