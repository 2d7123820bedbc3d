/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql: a statement as an operation. Literals (numbers, strings, dollar quotes, bit and hex strings)
 * and parameters ($1, ?) become ?, lists of them one, comments go, white space becomes one space.
 * Names, quoted ones too, stay.
 */
#ifndef SONDE_PROTOCOLS_SQL_H
#define SONDE_PROTOCOLS_SQL_H

#include "loaders/lib/protocols/conn.h"

#define SQL_MAX 512

enum sql_dialect {
	SQL_STANDARD,  /* "x" is a name; backslashes are themselves but in E'' */
	SQL_MYSQL,     /* "x" is a string, `x` a name, backslashes escape, # begins a comment */
	SQL_CLICKHOUSE /* "x" and `x` are names, backslashes escape, # begins a comment */
};

/* Text in `out`, its length. `cut`: the statement goes on beyond n. PROTO_NONE: the first word
 * alone. */
size_t sql_operation(const uint8_t *p, size_t n, bool cut, enum sql_dialect dialect,
		     enum proto_payload payload, char out[SQL_MAX]);
/* The trace id of a W3C traceparent in a comment (sqlcommenter); 0: none, else its length at *at.
 */
size_t sql_trace(const uint8_t *p, size_t n, const uint8_t **at);

#endif
