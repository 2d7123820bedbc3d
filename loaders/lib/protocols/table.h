/* SPDX-License-Identifier: Apache-2.0 */
/* table: each protocol, by its file's name. */
#ifndef SONDE_PROTOCOLS_TABLE_H
#define SONDE_PROTOCOLS_TABLE_H

#include "loaders/lib/protocols/protocol.h"

extern const struct protocol protocol_http, protocol_websocket, protocol_http2, protocol_fastcgi,
	protocol_postgres, protocol_mysql, protocol_redis, protocol_dns, protocol_memcached,
	protocol_mongo, protocol_kafka, protocol_amqp, protocol_nats, protocol_mqtt,
	protocol_cassandra, protocol_zookeeper, protocol_dubbo, protocol_foundationdb,
	protocol_clickhouse, protocol_tls;

/* http2.c: HTTP/1 has gone over to it on this connection, for a request with this operation, which
 * was reported; 0: it was not seen. */
void http2_upgraded(struct proto_conn *c, uint32_t operation);

#endif
