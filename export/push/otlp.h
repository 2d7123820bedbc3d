/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: what the store has as OTLP (opentelemetry-proto): metrics, and events as logs.
 *
 *  1. Metrics are those of sonde-export (export/metric.h), by the same queries. Sums and histograms are what came up in the range (temporality
 *     delta, from the range's begin to its end), gauges how they stood last in it. A range that is sent again has the same points at the same
 *     times.
 *  2. Each container and each unit that a metric is told of is a resource: host.name, service.name (its name), container.name, container.id,
 *     container.image.name or systemd.unit. All else is of the host: host.name, service.name = sonde.
 *  3. An event is a log record: what happened as its name and its text, with log.record.uid, which stays the same when it is sent again.
 */
#ifndef SONDE_PUSH_OTLP_H
#define SONDE_PUSH_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "export/push/target.h"
#include "schema/base/err.h"
#include "schema/store/read/reader.h"

/* A request of `n` points or records to `path`, compressed unless the target is plain. Not 0 ends it. */
typedef int otlp_take(void *ctx, const char *path, const void *body, size_t len, size_t n, struct err *e);

struct otlp_range {
	const struct store_segment_info *segments;
	size_t n;
	int64_t from_ts, to_ts; /* half-open, in seconds since 1970 */
};
int otlp_metrics(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx, struct err *e);
int otlp_logs(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx, struct err *e);

#endif
