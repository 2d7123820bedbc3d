/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlpname: what metrics, units and labels of export/metric.h are called in OpenTelemetry: by its
 * semantic conventions for containers and for systems where these have them, else sonde.NAME
 * without unit and _total. Pure.
 */
#ifndef SONDE_PUSH_OTLPNAME_H
#define SONDE_PUSH_OTLPNAME_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/strbuf.h"

struct otlp_name {
	char name[96];
	const char *unit; /* UCUM */
	bool additive; /* of a gauge: one that is added up over its labels, in OpenTelemetry's words
			  an UpDownCounter */
	bool without_kind; /* its label `kind` is in the name */
};

/* Of metric `metric` (an index) with the label kind="`kind`", "" if it has none. */
void otlp_name_of(unsigned metric, const char *kind, struct otlp_name *out);
/* Of a label, and of its value: `metric` as it is called in OpenTelemetry. Static, or what was
 * given. */
const char *otlp_label(const char *metric, const char *label);
const char *otlp_value(const char *attribute, const char *value);

/* The next of `a="x",b="y"` (totals.h): its name, and its value without escapes. false: there is
 * none. */
bool otlp_label_next(const char **labels, struct strbuf *name, struct strbuf *value);

#endif
