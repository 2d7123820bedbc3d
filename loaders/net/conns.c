/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/conns.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define SPARE_MOST              4096
#define LISTENER(netns_, port_) ((uint64_t)(netns_) << 16 | (port_))

/* ---- both ends ---- */

static uint64_t pair_key(uint64_t pair)
{
	uint64_t key = hash_u64(HASH_SEED, pair);

	return key ? key : 1;
}

static struct conn *pair_find(const struct conns *cs, enum net_side side, uint64_t key)
{
	uint64_t at;

	return idmap_get(&cs->pairs[side], key, &at) ? (struct conn *)(uintptr_t)at : NULL;
}

static void pair_remove(struct conns *cs, struct conn *c)
{
	for (int side = NET_SIDE_CLIENT; side <= NET_SIDE_SERVER; side++) {
		if (c->pair[side] && pair_find(cs, (enum net_side)side, c->pair[side]) == c)
			idmap_del(&cs->pairs[side], c->pair[side]);
		c->pair[side] = 0;
	}
}

static void mates_join(struct conn *client, struct conn *server)
{
	client->mate = server;
	server->mate = client;
	client->side = NET_SIDE_CLIENT;
	server->side = NET_SIDE_SERVER;
}

/* If its side is unknown, it is listed under both. */
static void pair_add(struct conns *cs, struct conn *c)
{
	for (int side = NET_SIDE_CLIENT; side <= NET_SIDE_SERVER && !c->mate; side++) {
		int other = NET_SIDE_CLIENT + NET_SIDE_SERVER - side;
		struct conn *mate;

		if (c->side && c->side != (enum net_side)side)
			continue;
		c->pair[side] = pair_key(record_pair(&c->r, (enum net_side)side));
		mate = pair_find(cs, (enum net_side)other, c->pair[side]);
		if (mate && mate != c && !mate->mate && !mate->mate_owner.start_ns)
			mates_join(side == NET_SIDE_CLIENT ? c : mate,
				   side == NET_SIDE_CLIENT ? mate : c);
		else
			idmap_set(&cs->pairs[side], c->pair[side], (uintptr_t)c);
	}
}

/* What is read of an open one may be of two moments: it is looked at again. */
static void pair_renew(struct conns *cs, struct conn *c)
{
	enum net_side side = c->side ? c->side : NET_SIDE_CLIENT;

	if (c->pair[side] == pair_key(record_pair(&c->r, side)))
		return;
	pair_remove(cs, c);
	pair_add(cs, c);
}

static bool has_pair(const struct net_record *r)
{
	return r->side != NET_SIDE_LISTENER && r->state != TCP_SYN_SENT && r->state != TCP_SYN_RECV;
}

/* ---- the table ---- */

static uint64_t key_hash(const struct conn_key *key)
{
	return hash_u64(hash_u64(HASH_SEED, key->sk), key->begin_ns);
}

static struct conn *conn_find(struct conns *cs, const struct conn_key *key)
{
	uint64_t at;

	return idmap_get(&cs->by_key, key_hash(key), &at) ? (struct conn *)(uintptr_t)at : NULL;
}

static struct conn *conn_new(struct conns *cs, const struct conn_key *key)
{
	struct conn *c = cs->spare;

	if (c) {
		cs->spare = c->next;
		cs->n_spare--;
		memset(c, 0, sizeof(*c));
	} else {
		c = mem_alloc(sizeof(*c));
	}
	c->key = *key;
	idmap_set(&cs->by_key, key_hash(key), (uintptr_t)c);
	DL_APPEND2(cs->all, c, before, after);
	cs->n++;
	return c;
}

static void conn_spare(struct conns *cs, struct conn *c)
{
	if (cs->n_spare >= SPARE_MOST) {
		free(c);
		return;
	}
	c->next = cs->spare;
	cs->spare = c;
	cs->n_spare++;
}

void conns_forget(struct conns *cs, struct conn *c)
{
	uint64_t at;

	if (c->mate) {
		c->mate->mate_owner = conns_owner(cs, c, &(enum net_owner_how){0});
		c->mate->mate = NULL;
	}
	pair_remove(cs, c);
	if (c->side == NET_SIDE_LISTENER &&
	    idmap_get(&cs->listeners, LISTENER(c->r.netns, c->r.lport), &at) && at == (uintptr_t)c)
		idmap_del(&cs->listeners, LISTENER(c->r.netns, c->r.lport));
	if (c->ended) {
		DL_DELETE(cs->waiting, c);
		cs->n_waiting--;
	}
	idmap_del(&cs->by_key, key_hash(&c->key));
	DL_DELETE2(cs->all, c, before, after);
	cs->n--;
	conn_spare(cs, c);
}

void conns_release(struct conns *cs)
{
	CONNS_EACH(cs, c, next)
	free(c);
	for (struct conn *c = cs->spare, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	idmap_release(&cs->by_key);
	for (int i = 0; i < 3; i++)
		idmap_release(&cs->pairs[i]);
	idmap_release(&cs->listeners);
	*cs = (struct conns){0};
}

static void end(struct conns *cs, struct conn *c)
{
	if (c->ended)
		return;
	c->ended = true;
	DL_APPEND(cs->waiting, c);
	cs->n_waiting++;
}

static struct conn *closer(struct conns *cs, const struct net_record *r)
{
	struct conn *c = conn_find(cs, &(struct conn_key){r->sk, r->begin_ns});

	if (c && c->r.how != NET_OWNER_OPENER) {
		c->r.owner = r->owner;
		c->r.how = r->how;
	}
	return c;
}

/* An end without an entry in the map has no start time: each is unique. */
struct conn *conns_take(struct conns *cs, const struct net_record *r)
{
	struct conn_key key = {r->sk, r->flags & NET_F_NO_ENTRY ? r->time_ns : r->begin_ns};
	struct conn *c;

	if (r->what == NET_CLOSER)
		return closer(cs, r);
	c = conn_find(cs, &key);
	if (c && c->ended)
		return NULL; /* read while it ended */
	if (!c)
		c = conn_new(cs, &key);
	c->r = *r;
	record_unmap(&c->r.family, c->r.peer);
	if (r->side)
		c->side = (enum net_side)r->side;
	if (c->side == NET_SIDE_LISTENER)
		idmap_set(&cs->listeners, LISTENER(r->netns, r->lport), (uintptr_t)c);
	else if (has_pair(r) && !c->mate && !c->mate_owner.start_ns)
		pair_renew(cs, c);
	c->reading = cs->reading;
	if (r->what == NET_END)
		end(cs, c);
	return c;
}

/* ---- waiting ---- */

/* More of the other end than is known so far would have come by now. */
static bool is_settled(const struct conns *cs, const struct conn *c, int64_t age_ns)
{
	if (cs->n_waiting <= CONNS_FEW && age_ns < CONNS_MATE_MOST_NS)
		return cs->reading != c->reading;
	return age_ns >= CONNS_MATE_NS;
}

static bool is_due(const struct conns *cs, const struct conn *c, int64_t now_ns, int64_t known_ns)
{
	int64_t age = now_ns - (int64_t)c->r.time_ns;

	if ((int64_t)c->r.time_ns > known_ns && age < CONNS_MAPS_NS)
		return false;
	if (c->r.how == NET_OWNER_NONE && age < CONNS_OWNER_NS)
		return false;
	if (!has_pair(&c->r))
		return true;
	if (c->mate)
		return c->mate->r.how != NET_OWNER_NONE || is_settled(cs, c, age);
	return c->mate_owner.start_ns || is_settled(cs, c, age);
}

struct conn *conns_next(struct conns *cs, int64_t now_ns, int64_t known_ns, bool all)
{
	struct conn *c = cs->waiting;

	return c && (all || cs->n_waiting > CONNS_WAIT_MOST || is_due(cs, c, now_ns, known_ns)) ?
		       c :
		       NULL;
}

/* ---- processes ---- */

struct conn *conns_listener(const struct conns *cs, uint32_t netns, uint16_t port)
{
	uint64_t at;

	return idmap_get(&cs->listeners, LISTENER(netns, port), &at) ?
		       (struct conn *)(uintptr_t)at :
		       NULL;
}

struct net_owner conns_owner(const struct conns *cs, const struct conn *c, enum net_owner_how *how)
{
	const struct conn *l;

	*how = (enum net_owner_how)c->r.how;
	if (*how != NET_OWNER_NONE)
		return c->r.owner;
	l = c->side == NET_SIDE_CLIENT ? NULL : conns_listener(cs, c->r.netns, c->r.lport);
	if (!l)
		return (struct net_owner){0};
	*how = NET_OWNER_LISTENER;
	return l->r.holder.start_ns ?
		       l->r.holder :
		       l->r.owner; /* the listener may have passed it on to a child */
}

struct net_owner conns_mate(const struct conns *cs, const struct conn *c)
{
	enum net_owner_how how;

	return c->mate ? conns_owner(cs, c->mate, &how) : c->mate_owner;
}

enum net_side conns_side(const struct conns *cs, const struct conn *c)
{
	if (c->side)
		return c->side;
	if (conns_listener(cs, c->r.netns, c->r.lport))
		return NET_SIDE_SERVER;
	return c->r.lport > c->r.dport ? NET_SIDE_CLIENT : NET_SIDE_UNKNOWN;
}
