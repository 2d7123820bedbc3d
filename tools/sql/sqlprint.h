/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlprint: the rows of a query on a stream, in one of five forms. Rows are printed as they come,
 * except `box` and `json`: a box takes its widths from up to 1000 rows at a time, json is one
 * document.
 *
 *   box     a frame of line-drawing characters; control characters are shown (strbuf_addshown)
 *   csv     RFC 4180 quoting, a header line, lines end in LF
 *   json    the envelope of tools/print/json.h; rows are objects
 *   ndjson  one object a line
 *   Blobs are lower-case hex. NULL is empty (box, csv) or null.
 */
#ifndef SONDE_TOOLS_SQLPRINT_H
#define SONDE_TOOLS_SQLPRINT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct sqlite3_stmt;

enum sqlprint_form { SQLPRINT_BOX = 0, SQLPRINT_CSV, SQLPRINT_JSON, SQLPRINT_NDJSON };

/* Step through the statement to its end. `rows` takes the objects of SQLPRINT_JSON, else NULL. `n`
 * is raised by the number of rows; those above `most` are only counted. Returns SQLite's code of
 * the last step: SQLITE_DONE when all went well. */
int sqlprint(struct sqlite3_stmt *st, enum sqlprint_form form, FILE *out, json_t *rows,
	     uint64_t most, uint64_t *n);

#endif
