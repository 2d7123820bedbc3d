/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: the store's data as OTLP (opentelemetry-proto): metrics, events as logs, requests as spans,
 * and profiles.
 *
 *  1. The metrics are those of sonde-export (export/metric.h), from the same queries. Sums and
 * histograms cover the range (temporality delta, from its begin to its end); gauges have their last
 * value in it. A range that is sent again has the same points at the same times.
 *  2. Each container and each unit with metrics is a resource: host.name, service.name (its name),
 * container.name, container.id, container.image.name or systemd.unit. Everything else belongs to
 * the host: host.name, service.name = sonde.
 *  3. An event is a log record: what happened is its name and its text. Its log.record.uid is the
 * same when it is sent again.
 *  4. A span is one side's view of a kept request (view request_spans): the server's or the
 * client's, each with its id in the store. A server's span is a child of the client's, and requests
 * that the server makes meanwhile are its children, where sonde knows that
 * (tools/requests/traces.h), as `sonde trace` shows them.
 *  5. Its trace id is the one in its header; else its parent's; a topmost span without one takes
 * that of the first span below it that has one, else one made from its own id. A child of a span of
 * another trace has a link to it instead of a parent.
 *  6. A request that was not kept is the parent of those made for it all the same. A request from
 * elsewhere has no known parent: its span is a root with sonde.exchange, an id that both ends of a
 * TCP connection compute alike, on whichever hosts they are.
 *  7. Its status is an error where all verbs count one; without an answer, it ends where it begins.
 *  8. A profile is one quantity (samples, CPU time, bytes in use ...) of one command in one
 * container, unit or the host (profilegroup.h), which is its resource, by stack: of a counter the
 * sum over the range, of a gauge its value at the end. Its id stays the same.
 *  9. A request has the profiles of one kind and the dictionary they refer to (otlpdict.h).
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
