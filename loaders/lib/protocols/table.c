/* SPDX-License-Identifier: Apache-2.0 */
/* table: the protocols, in the order in which a connection asks them: those with the plainest sign
 * first. */
#include "loaders/lib/protocols/table.h"

const struct protocol *const PROTOCOLS[] = {
	&protocol_tls,          &protocol_http,       &protocol_http2,     &protocol_amqp,
	&protocol_postgres,     &protocol_mysql,      &protocol_nats,      &protocol_mqtt,
	&protocol_dubbo,        &protocol_fastcgi,    &protocol_mongo,     &protocol_cassandra,
	&protocol_foundationdb, &protocol_clickhouse, &protocol_memcached, &protocol_redis,
	&protocol_zookeeper,    &protocol_kafka,      &protocol_dns,       NULL,
};
