/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logfailed: which requests failed while a pattern was logged. It says that both were there at the
 * same time, not that one is the other's cause.
 */
#ifndef SONDE_TOOLS_LOGFAILED_H
#define SONDE_TOOLS_LOGFAILED_H

#include <jansson.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/logs/logread.h"
#include "tools/select/select.h"

struct logfailed {
	uint64_t errors, requests; /* as the services answered them; errors 0: none failed */
	/* of the operation that failed most */
	char service[128], operation[256], status[64];
	uint64_t of_errors;
};

/* The time is from the pattern's first message to its last one, in whole buckets. */
int logfailed_read(const struct selection *sel, const struct logread_pattern *p,
		   struct logfailed *out, struct err *e);
/* "meanwhile 34 of 120 requests failed, 30 of them POST /pay of shop:8080 (500)" */
void logfailed_say(const struct logfailed *f, struct strbuf *out);
json_t *logfailed_json(const struct logfailed *f);

#endif
