/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: the envelope of every `--json` answer, on jansson:
 *   {"schema":"sonde.VERB/1","from":"RFC3339","to":..,"from_ns":..,"to_ns":..,"rows":[..],"warnings":[..]}
 * Each time is RFC 3339 UTC and, with `_ns` after its key, an integer; what is not known is null.
 * Within /1 keys are only added.
 */
#ifndef SONDE_TOOLS_JSON_H
#define SONDE_TOOLS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A new envelope; rows are an empty array, and so are warnings but for files that were left out
 * (schema/store/read/unreadable.h). `verb` "stacks" gives "sonde.stacks/1". from/to 0: null. */
json_t *json_envelope(const char *verb, int64_t from_ns, int64_t to_ns);
json_t *json_rows(json_t *envelope); /* borrowed */
void json_warn(json_t *envelope, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Any bytes: made valid UTF-8 (U+FFFD for what is not); control bytes stay, as JSON escapes. NULL
 * gives null. */
json_t *json_text(const char *s);
json_t *json_text_or_null(const char *s); /* null for "", too */
json_t *json_number_or_null(int64_t n, bool known);
/* obj[key] = RFC 3339 and obj[key "_ns"] = integer; null for 0. */
void json_set_time(json_t *obj, const char *key, int64_t ns);
/* One line (compact when `compact`, else indented), a newline, and the reference is dropped. 0 or
 * -EIO. */
int json_print(json_t *envelope, FILE *out, int compact);
/* The same, compact, of an envelope without rows, which are made one by one and freed: of hundreds
 * of thousands the whole would take a gigabyte. `row` returns a new object. */
int json_print_rows(json_t *envelope, FILE *out, size_t n, json_t *(*row)(void *ctx, size_t i),
		    void *ctx);

#endif
