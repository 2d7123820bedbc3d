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
/* Once the rows are in: says how many there are in all ("total"), how many of them are not here
 * ("rest"), and in a warning which -n shows them: `n`, or as many as there are. Each verb that
 * shows a limited number of rows calls one of these. */
void json_bound(json_t *envelope, size_t total);
void json_bound_n(json_t *envelope, size_t total, size_t n);
/* A list that is no row: sets it, and "KEY_total". */
void json_bound_list(json_t *envelope, const char *key, json_t *list, size_t total);
/* The same with the first `most` of a whole list, which is taken; `obj` may be inside of a row. */
void json_cut_list(json_t *obj, const char *key, json_t *list, size_t most);
/* As json_bound_list, but the list itself only if json_ask has its key: else "KEY_total" alone.
 * `list` is taken. Each verb that calls this has the key in jsonshape_lists. */
void json_side_list(json_t *envelope, const char *key, json_t *list, size_t total);
/* --with: the keys of such lists that are printed, with a comma between; borrowed. */
void json_ask(const char *names);
/* Whether `name` is one of `names`, which have a comma between. */
bool json_names_has(const char *names, const char *name);
/* Any bytes: made valid UTF-8 (U+FFFD for what is not); control bytes stay, as JSON escapes. NULL
 * gives null. */
json_t *json_text(const char *s);
json_t *json_text_or_null(const char *s); /* null for "", too */
json_t *json_number_or_null(int64_t n, bool known);
/* obj[key] = RFC 3339 and obj[key "_ns"] = integer; null for 0. */
void json_set_time(json_t *obj, const char *key, int64_t ns);
/* --ndjson: what is printed from now on is the rows alone, one object a line, and warnings go to
 * standard error. */
void json_as_lines(void);
/* One line (compact when `compact`, else indented), a newline, and the reference is dropped. 0 or
 * -EIO. */
int json_print(json_t *envelope, FILE *out, int compact);
/* The same, compact, of an envelope without rows, which are made one by one and freed: of hundreds
 * of thousands the whole would take a gigabyte. `row` returns a new object. */
int json_print_rows(json_t *envelope, FILE *out, size_t n, json_t *(*row)(void *ctx, size_t i),
		    void *ctx);

#endif
