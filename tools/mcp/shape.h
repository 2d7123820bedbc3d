/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape: from what a verb prints with --json to an answer for an assistant: small, bounded, and
 * plain to read.
 *
 *   1. No epoch numbers and no raw nanoseconds: "cpu_ns": 5111111060 becomes "cpu": "5.11 s",
 *      "rss_bytes" a size, "share" a percentage, times RFC 3339 with the offset of this host's time
 *      zone. Other numbers have three significant digits, counts are whole.
 *   2. What is null, false or an empty text is left out: not measured. 0 is kept.
 *      Where an object names the unit of its numbers, or the answer that of all, they have it.
 *   3. Recorded text is data: control characters become visible escapes, and at most SHAPE_TEXT
 *      bytes of it are kept.
 *   4. A list has at most `most` entries; if some were left out,
 *      "NAME_total" says how many there are. Of a long list of texts (a path) the middle is left
 *      out.
 *
 * Pure: no I/O; of the time zone it uses what localtime_r says.
 */
#ifndef SONDE_TOOLS_SHAPE_H
#define SONDE_TOOLS_SHAPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define SHAPE_TEXT 200                                     /* bytes of one text */
#define SHAPE_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(6)) /* how answers are written */

struct shape {
	size_t most;             /* rows; lists inside of rows: at most 5 */
	const char *const *drop; /* keys that are left out; NULL-terminated, or NULL */
	char unit;               /* shape_answer's own, and the next */
	const char *unit_text;
	bool failing; /* of checks: only those that are not fine */
	bool raw;     /* rows of SQL: numbers and columns as they are, text as above */
};

/* The caller owns the result. `answer` is an object with "rows"; anything else is kept as a value.
 */
json_t *shape_answer(const json_t *answer, const struct shape *s);
/* Makes `top` at most `limit` bytes long as compact JSON: the longest list in it loses its second
 * half, again and again; its owner says so ("truncated"). false: even so it is longer. */
bool shape_fit(json_t *top, size_t limit);

#endif
