/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netpeers.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/select/askrows.h"

#define SEVERAL UINT64_MAX

#define COLUMNS "process_id, side, peer, coalesce(port, 0), peer_container, peer_comm, "
#define KNOWN \
	" AND protocol IN ('tcp', 'udp', 'quic') AND peer_process_id > 0 AND peer_comm NOT IN ('', '[unknown]')"
/* What does not move has a row a minute. */
static const char FLOWS[] =
	"SELECT DISTINCT " COLUMNS "0 FROM flows WHERE ts BETWEEN ?1 - 70 AND ?2" KNOWN;
/* The same from sums (store_segment_sums). */
static const struct askrows_sums FLOWS_SUMMED = {
	{"flow_row"},
	"SELECT DISTINCT x.process, coalesce(sd.value, ''), coalesce(pe.value, ''), CAST(coalesce(po.value, '') AS INTEGER),"
	" coalesce(iif(mc.name = '', substr(mc.runtime_id, 1, 12), mc.name), ''), m.comm, 0 FROM flow_sum x"
	" JOIN process p ON p.id = x.process JOIN process m ON m.id = x.mate LEFT JOIN container mc ON mc.id = m.container"
	" LEFT JOIN text sd ON sd.id = x.side LEFT JOIN text pr ON pr.id = x.protocol LEFT JOIN text pe ON pe.id = x.peer"
	" LEFT JOIN text po ON po.id = x.port WHERE pr.value IN ('tcp', 'udp', 'quic') AND m.comm NOT IN ('', '[unknown]')"};
static const char SINGLE[] =
	"SELECT DISTINCT " COLUMNS
	"coalesce(client_port, 0) FROM connections WHERE ts BETWEEN ?1 AND ?2 AND side = 'server'" KNOWN;

enum side { SIDE_CLIENT, SIDE_SERVER };

struct reading {
	const struct store_dict *dict;
	struct netpeers *out;
};

/* Of a server `port` is the client's, 0: any. */
static uint64_t key_of(enum side side, const struct store_process_row *p, const char *address,
		       int64_t port)
{
	uint64_t h = hash_u64(hash_u64(hash_u64(HASH_SEED, side), p->pid), (uint64_t)p->start_ns);

	return hash_u64(hash_str(h, address), (uint64_t)port);
}

static uint64_t place_of(struct netpeers *n, const char *container, const char *comm)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT;
	uint64_t *at;
	bool fresh;

	strbuf_addf(&name, "%s%s", *container ? "container " : "", *container ? container : comm);
	at = idmap_ref(&n->by_name, hash_str(HASH_SEED, strbuf_str(&name)), &fresh);
	if (!fresh)
		return *at;
	mem_grow(n->peers, n->n, n->cap);
	n->peers[n->n++] = strbuf_take(&name);
	return *at = n->n;
}

static void put(struct netpeers *n, uint64_t key, uint64_t place)
{
	bool fresh;
	uint64_t *at = idmap_ref(&n->by_key, key, &fresh);

	*at = fresh || *at == place ? place : SEVERAL;
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	int64_t port = sqlite3_column_int64(st, 6);
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *side = askrows_text(st, 1), *peer = askrows_text(st, 2);
	uint64_t place;

	if (!p)
		return;
	place = place_of(r->out, askrows_text(st, 4), askrows_text(st, 5));
	if (!strcmp(side, "client"))
		put(r->out, key_of(SIDE_CLIENT, p, peer, sqlite3_column_int64(st, 3)), place);
	else if (!strcmp(side, "server"))
		put(r->out, key_of(SIDE_SERVER, p, peer, port), place);
}

int netpeers_read(const struct selection *sel, struct netpeers *out, struct err *e)
{
	struct reading r = {.out = out};
	const struct askrows_part parts[] = {
		{FLOWS, take, &r, FLOWS_SUMMED, "flow_row"},
		{SINGLE, take, &r, .table = "connection_row"},
	};
	int rc;

	*out = (struct netpeers){.at = sel->to_ns / NSEC_PER_SEC};
	rc = netnames_read(sel, &out->names, e);
	return rc ? rc : askrows_each(sel, &r.dict, parts, ARRAY_SIZE(parts), e);
}

void netpeers_release(struct netpeers *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->peers[i]);
	free(n->peers);
	idmap_release(&n->by_key);
	idmap_release(&n->by_name);
	netnames_release(&n->names);
	*n = (struct netpeers){0};
}

/* "10.0.0.5:5432", "[::1]:80". `address` holds INET6_ADDRSTRLEN bytes. */
static bool address_read(const char *object, char *address, int64_t *port)
{
	const char *colon = strrchr(object, ':'), *from = object + (*object == '['), *to = colon;
	char *end = NULL;
	unsigned char raw[16];

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return false;
	if (*object == '[' && (colon == object || *--to != ']'))
		return false;
	if (to <= from || to - from >= INET6_ADDRSTRLEN)
		return false;
	memcpy(address, from, (size_t)(to - from));
	address[to - from] = '\0';
	*port = strtol(colon + 1, &end, 10);
	return !*end && *port > 0 && *port < 65536 &&
	       inet_pton(*object == '[' ? AF_INET6 : AF_INET, address, raw) == 1;
}

const char *netpeers_find(const struct netpeers *n, const struct store_process_row *p,
			  const char *object)
{
	char address[INET6_ADDRSTRLEN];
	uint64_t place;
	int64_t port;

	if (!address_read(object, address, &port))
		return NULL;
	if (idmap_get(&n->by_key, key_of(SIDE_CLIENT, p, address, port), &place) ||
	    idmap_get(&n->by_key, key_of(SIDE_SERVER, p, address, port), &place) ||
	    idmap_get(&n->by_key, key_of(SIDE_SERVER, p, address, 0), &place))
		return place == SEVERAL ? NULL : n->peers[place - 1];
	return netnames_find(&n->names, p, address, n->at);
}
