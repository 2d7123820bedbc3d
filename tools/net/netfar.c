/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netfar.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/select/askrows.h"

/* Told once an hour: of what was open then, before the range. */
static const char MARKS[] =
	"SELECT process_id, side, peer, coalesce(port, 0), mark FROM flow_marks WHERE ts BETWEEN ?1 - 3600 AND ?2 GROUP BY 1, 2, 3, 4, 5";

struct far_end {
	struct netflows_end who;
	bool server;
	uint64_t flow,
		place; /* hashes: of the row; of the address and port, as its container sees it */
	uint64_t mark;
};

struct far {
	const struct selection *sel;
	const struct store_dict *dict; /* of the segment */
	struct far_end *ends;
	size_t n, cap;
	struct idmap by_mark[2]; /* of clients, of servers: place in ends */
	struct idmap flows,
		places; /* hash -> place in ends of the one other end, MANY: of several */
};

#define MANY UINT64_MAX

static uint64_t place_hash(const char *host, const char *container, const char *peer, int64_t port)
{
	return hash_u64(hash_str(hash_str(hash_str(HASH_SEED, host), container), peer),
			(uint64_t)port);
}

static uint64_t flow_hash(const struct netflows_end *who, const char *side, const char *peer,
			  int64_t port)
{
	return hash_str(
		hash_u64(hash_str(place_hash(who->host, who->container, peer, port), who->comm),
			 (uint64_t)who->pid),
		side);
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct far *far = ctx;
	int64_t port = sqlite3_column_int64(st, 3);
	const struct store_process_row *p =
		store_dict_process(far->dict, sqlite3_column_int64(st, 0));
	const char *side = askrows_text(st, 1), *peer = askrows_text(st, 2);
	char host[NETFLOWS_HOST];
	struct far_end x = {.server = !strcmp(side, "server"),
			    .mark = (uint64_t)sqlite3_column_int64(st, 4)};

	if (!p || !select_wants_process(far->sel, p))
		return;
	x.who = (struct netflows_end){.host = mem_strdup(netflows_host(p, host)),
				      .container = mem_strdup(netflows_container(p)),
				      .comm = mem_strdup(p->comm),
				      .pid = p->pid};
	x.flow = flow_hash(&x.who, side, peer, port);
	x.place = place_hash(host, x.who.container, peer, port);
	idmap_set(&far->by_mark[x.server], x.mark, far->n);
	mem_grow(far->ends, far->n, far->cap);
	far->ends[far->n++] = x;
}

static bool same_node(const struct netflows_end *a, const struct netflows_end *b)
{
	return !strcmp(a->host, b->host) && !strcmp(a->container, b->container) &&
	       (*a->container || !strcmp(a->comm, b->comm));
}

static void note(struct far *far, struct idmap *m, uint64_t key, size_t mate)
{
	bool fresh;
	uint64_t *at = idmap_ref(m, key, &fresh);

	if (fresh)
		*at = mate;
	else if (*at != MANY && !same_node(&far->ends[*at].who, &far->ends[mate].who))
		*at = MANY;
}

static void pair_all(struct far *far)
{
	for (size_t i = 0; i < far->n; i++) {
		const struct far_end *x = &far->ends[i];
		uint64_t mate;

		if (!idmap_get(&far->by_mark[!x->server], x->mark, &mate) ||
		    !strcmp(far->ends[mate].who.host, x->who.host))
			continue;
		note(far, &far->flows, x->flow, (size_t)mate);
		if (!x->server)
			note(far, &far->places, x->place, (size_t)mate);
	}
}

static void mate_set(struct netflows_row *r, const struct netflows_end *mate)
{
	free(r->mate.host);
	free(r->mate.container);
	free(r->mate.comm);
	r->mate = (struct netflows_end){.host = mem_strdup(mate->host),
					.container = mem_strdup(mate->container),
					.comm = mem_strdup(mate->comm),
					.pid = mate->pid};
}

/* A server's row of several clients of one host has one of them: which it is their rows tell. */
static void row_join(const struct far *far, struct netflows_row *r)
{
	bool client = !strcmp(r->side, "client");
	uint64_t at;

	if (strcmp(r->protocol, "tcp") || *r->mate.comm || *r->mate.container)
		return;
	if (!idmap_get(&far->flows, flow_hash(&r->who, r->side, r->peer, r->port), &at) &&
	    (!client ||
	     !idmap_get(&far->places, place_hash(r->who.host, r->who.container, r->peer, r->port),
			&at) ||
	     at == MANY))
		return;
	if (at != MANY)
		mate_set(r, &far->ends[at].who);
	else if (client)
		r->apart = true;
}

/* The client that a server's row shares its last mark with. */
static void server_join(const struct far *far, struct netflows_row *r)
{
	uint64_t flow = flow_hash(&r->who, r->side, r->peer, r->port), mate;

	for (size_t i = 0; i < far->n; i++)
		if (far->ends[i].server && far->ends[i].flow == flow &&
		    idmap_get(&far->by_mark[0], far->ends[i].mark, &mate) &&
		    strcmp(far->ends[mate].who.host, r->who.host)) {
			mate_set(r, &far->ends[mate].who);
			return;
		}
}

static void release(struct far *far)
{
	for (size_t i = 0; i < far->n; i++) {
		free(far->ends[i].who.host);
		free(far->ends[i].who.container);
		free(far->ends[i].who.comm);
	}
	free(far->ends);
	idmap_release(&far->by_mark[0]);
	idmap_release(&far->by_mark[1]);
	idmap_release(&far->flows);
	idmap_release(&far->places);
}

int netfar_join(const struct selection *sel, struct netflows *f, struct err *e)
{
	struct far far = {.sel = sel};
	const struct askrows_part parts[] = {{MARKS, take, &far}};
	int rc = askrows_each(sel, &far.dict, parts, 1, e);

	if (!rc)
		pair_all(&far);
	for (size_t i = 0; !rc && i < f->n; i++) {
		struct netflows_row *r = &f->rows[i];

		row_join(&far, r);
		if (!strcmp(r->side, "server") && !*r->mate.comm && !*r->mate.container &&
		    !strcmp(r->protocol, "tcp"))
			server_join(&far, r);
	}
	release(&far);
	return rc;
}
