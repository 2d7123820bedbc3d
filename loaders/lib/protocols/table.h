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

#endif
