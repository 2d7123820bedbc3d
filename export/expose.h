/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expose: totals as Prometheus reads them: its text format 0.0.4, or OpenMetrics 1.0 (which has
 * units, counters named without _total in their heads, and "# EOF" at the end). Each metric's
 * series are adjacent and sorted; a histogram has all its bounds.
 */
#ifndef SONDE_EXPORT_EXPOSE_H
#define SONDE_EXPORT_EXPOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "export/totals.h"
#include "export/update.h"

/* How many series it is, with those about sonde itself. */
size_t expose_count(struct totals *t);
void expose(struct totals *t, const struct update_store *about, bool openmetrics,
	    struct strbuf *out);

#endif
