/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clickhouse_text: statements of ClickHouse as operations, and where its HTTP interface has them:
 * in the parameter `query` of a request for "/" (percent-coded), or else in the body. Pure.
 */
#ifndef SONDE_PROTOCOLS_CLICKHOUSE_TEXT_H
#define SONDE_PROTOCOLS_CLICKHOUSE_TEXT_H

#include "loaders/lib/protocols/protocol.h"

/* The operation of a statement, of which n bytes are here; `cut`: it has more. A format's data,
 * which may follow in the text, is left out. */
uint32_t clickhouse_operation(struct proto_conn *c, const uint8_t *p, size_t n, bool cut);
/* Does this begin as a statement does? */
bool clickhouse_is_statement(const uint8_t *p, size_t n);
/* Has a request for this target no path? Only such a one brings a statement. */
bool clickhouse_is_target(const uint8_t *target, size_t n);
/* The value of the target's parameter `query`, decoded. Its length, at most PROTO_LOOK; 0: there is
 * none. *cut: it has more. */
size_t clickhouse_parameter(const uint8_t *target, size_t n, uint8_t out[PROTO_LOOK], bool *cut);
/* A body of chunks: the size of its first chunk, whose data begins at *at. 0: its line has not
 * come, or it is the empty one. */
size_t clickhouse_chunk(const uint8_t *p, size_t n, size_t *at);

#endif
