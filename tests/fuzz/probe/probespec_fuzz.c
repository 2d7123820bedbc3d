/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/probespec/spec.c
 * covers: loaders/probe/format.c
 * covers: loaders/probe/plan.c
 *
 * Any bytes are a probe or an error with a message; what a probe reads lies within its limits. The
 * first line is the probe, the rest a tracepoint's format.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "loaders/probe/format.h"
#include "loaders/probe/plan.h"
#include "schema/probespec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct probespec *s, const struct probe_plan *p)
{
	for (uint32_t i = 0; i < PROBE_ARGS; i++)
		if (p->args[i].size > 8 || (i >= s->n_args && p->args[i].from))
			abort();
	for (uint32_t i = 0; i < PROBE_CONDS; i++)
		if (p->conds[i].arg != PROBE_NONE && p->conds[i].arg > PROBE_NS)
			abort();
	if (s->n_args > PROBESPEC_ARGS || s->n_conds > PROBESPEC_CONDS ||
	    s->rate > PROBESPEC_RATE_MOST || strlen(s->name) >= PROBESPEC_NAME)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	struct format_field fields[FORMAT_FIELDS];
	char text[PROBESPEC_TEXT_MAX + 64];
	static struct probe_plan plan;
	static struct probespec s;
	struct err e = {0};
	size_t n;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, data, len);
	text[len] = 0;
	n = end ? format_read((const char *)end + 1, size - len - 1, fields) : 0;
	if (n > FORMAT_FIELDS)
		abort();
	if (probespec_parse(text, &s, &e) ||
	    plan_make(&s, NULL, &(struct plan_source){.fields = fields, .n_fields = n}, &plan,
		      &e)) {
		if (!e.what[0])
			abort();
		return 0;
	}
	check(&s, &plan);
	return 0;
}
