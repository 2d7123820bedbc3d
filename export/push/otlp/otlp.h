/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: what the store has as OTLP (opentelemetry-proto): metrics, events as logs, and requests as
 * spans.
 *
 *  1. Metrics are those of sonde-export (export/metric.h), by the same queries. Sums and histograms
 * are what came up in the range (temporality delta, from the range's begin to its end), gauges how
 * they stood last in it. A range that is sent again has the same points at the same times.
 *  2. Each container and each unit that a metric is told of is a resource: host.name, service.name
 * (its name), container.name, container.id, container.image.name or systemd.unit. All else is of
 * the host: host.name, service.name = sonde.
 *  3. An event is a log record: what happened as its name and its text, with log.record.uid, which
 * stays the same when it is sent again.
 *  4. A span is one side's view of a request that was kept (view request_spans): a server's or a
 * client's, each with the id that the store has for it. Below a client's stands the server's, below
 * that what it asked, where sonde knows it (tools/requests/traces.h): `sonde trace` shows the same.
 *  5. Its trace is the one that its header names; else that of what it stands below; of what stands
 * highest that of the first below it that has one; else one that is made of the highest one's id.
 * What stands below a span of another trace has a link to it instead of a parent.
 *  6. What it was asked for and was not kept is its parent all the same. Who asked from elsewhere
 * is not known: such a span is a root, with sonde.exchange, by which the two ends of a TCP
 * connection know a request alike, whichever host they are on.
 *  7. Its status is an error where all verbs count one; its end is its begin where it had no
 * answer.
 *  8. A profile is one number (samples, CPU time, bytes in use ...) of what one command used in one
 * container, unit or the host (profilegroup.h), which is its resource, stack by stack: of counters
 * what came up in the range, of gauges how they stood at its end. Its id stays the same.
 *  9. A request has the profiles of one kind, and the dictionary of what they name (otlpdict.h).
 */
#ifndef SONDE_PUSH_OTLP_H
#define SONDE_PUSH_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "export/push/target.h"
#include "schema/base/err.h"
#include "schema/store/read/reader.h"

/* A request of `n` points or records to `path`, compressed unless the target is plain. Not 0 ends
 * it. */
typedef int otlp_take(void *ctx, const char *path, const void *body, size_t len, size_t n,
		      struct err *e);

struct otlp_range {
	const struct store_segment_info *segments;
	size_t n;
	int64_t from_ts, to_ts; /* half-open, in seconds since 1970 */
};
int otlp_metrics(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx,
		 struct err *e);
/* how far before and behind the range its segments have to reach */
#define OTLP_SPANS_BEFORE_S 1020
#define OTLP_SPANS_AFTER_S  10
int otlp_spans(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx,
	       struct err *e);
int otlp_profiles(const char *store, const struct otlp_range *r, const struct target *t,
		  otlp_take *take, void *ctx, struct err *e);
int otlp_logs(const struct otlp_range *r, const struct target *t, otlp_take *take, void *ctx,
	      struct err *e);

#endif
