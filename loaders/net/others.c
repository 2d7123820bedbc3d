/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/others.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/net/record.h"
#include "schema/base/mem.h"

#define OTHERS_MOST          65536
#define BOUND(netns_, port_) ((uint64_t)(netns_) << 16 | (port_))
#define ALONE(netns_, at_)   ((uint64_t)(netns_) << 32 | (at_))

void others_release(struct others *os)
{
	free(os->items);
	idmap_release(&os->by_sk);
	idmap_release(&os->bound);
	idmap_release(&os->alone);
	*os = (struct others){0};
}

void others_clear(struct others *os)
{
	os->n = 0;
	idmap_clear(&os->by_sk);
	idmap_clear(&os->bound);
	idmap_clear(&os->alone);
}

static bool has_peer(const struct net_other *o)
{
	return o->r.family == AF_UNIX ? o->peer_sk != 0 : o->r.dport != 0;
}

/* An IPv4 loopback address other than the usual one: unique to its listener. 0: it is not one. */
static uint32_t chosen_loopback(uint16_t family, const uint8_t at[16])
{
	uint32_t v4;

	memcpy(&v4, at, sizeof(v4));
	v4 = ntohl(v4);
	return family == AF_INET && v4 >> 24 == 127 && v4 != 0x7f000001 ? v4 : 0;
}

static void bound_add(struct others *os, const struct net_other *o)
{
	uint32_t alone = chosen_loopback(o->r.family, o->r.local);

	if (o->r.family == AF_UNIX || !o->r.lport || has_peer(o))
		return;
	idmap_set(&os->bound, BOUND(o->r.netns, o->r.lport), os->n);
	if (alone)
		idmap_set(&os->alone, ALONE(o->r.netns, alone), os->n);
}

/* Of a socket that several have, the first. */
void others_add(struct others *os, const struct net_other *o)
{
	struct net_other *x;

	if (os->n >= OTHERS_MOST || idmap_get(&os->by_sk, o->r.sk, &(uint64_t){0}))
		return;
	mem_grow(os->items, os->n, os->cap);
	x = &os->items[os->n];
	*x = *o;
	record_unmap(&x->r.family, x->r.peer);
	idmap_set(&os->by_sk, o->r.sk, os->n);
	bound_add(os, o);
	os->n++;
}

static const struct net_other *at_place(const struct others *os, const struct idmap *m,
					uint64_t key)
{
	uint64_t at;

	return idmap_get(m, key, &at) && at < os->n ? &os->items[at] : NULL;
}

/* The kernel's names of abstract sockets are any bytes: what is no letter ends them here. */
void others_path(const uint8_t *path, size_t len, char out[NET_PATH + 4])
{
	size_t n = 0, i = 0;

	len = len < NET_PATH ? len : NET_PATH;
	if (len && !path[0]) {
		out[n++] = '@';
		i = 1;
	}
	for (; i < len && path[i]; i++)
		out[n++] = (char)path[i];
	out[n] = '\0';
}

static void path_of(const struct net_other *o, char out[NET_PATH + 4])
{
	others_path(o->path, o->path_len, out);
}

const struct net_other *others_socket(const struct others *os, uint64_t sk)
{
	return sk ? at_place(os, &os->by_sk, sk) : NULL;
}

const struct net_other *others_bound(const struct others *os, uint32_t netns, uint16_t family,
				     const uint8_t peer[16], const uint8_t local[16], uint16_t port)
{
	bool here = record_is_loopback(family, peer) || !memcmp(peer, local, 16);
	const struct net_other *o = here ? at_place(os, &os->bound, BOUND(netns, port)) : NULL;
	uint32_t alone = chosen_loopback(family, peer);

	return o || !alone ? o : at_place(os, &os->alone, ALONE(netns, alone));
}

/* One that is not accepted yet has no file. */
static bool is_mate(const struct net_other *mate, uint32_t peer_inode)
{
	return !peer_inode || !mate->r.inode || mate->r.inode == peer_inode;
}

static void unix_edge(const struct others *os, const struct net_other *o, struct others_edge *x)
{
	x->mate = at_place(os, &os->by_sk, o->peer_sk);
	if (x->mate && !is_mate(x->mate, o->peer_inode))
		x->mate = NULL;
	if (o->path_len) {
		x->side = x->mate && x->mate->path_len ? NET_SIDE_UNKNOWN : NET_SIDE_SERVER;
		path_of(o, x->peer);
	} else if (x->mate && x->mate->path_len) {
		x->side = NET_SIDE_CLIENT;
		path_of(x->mate, x->peer);
	}
}

/* A socket that is bound to a port and has no peer is looked up by all. */
static void udp_edge(const struct others *os, const struct net_other *o, struct others_edge *x)
{
	x->mate = others_bound(os, o->r.netns, o->r.family, o->r.peer, o->r.local, o->r.dport);
	x->side = x->mate || o->r.lport > o->r.dport || o->r.lport >= NET_EPHEMERAL ?
			  NET_SIDE_CLIENT :
			  NET_SIDE_SERVER;
}

static bool waits(const struct net_other *o)
{
	return o->r.family == AF_UNIX ? o->path_len && (o->r.state == TCP_LISTEN ||
							(o->r.type == SOCK_DGRAM && !o->peer_sk)) :
					!has_peer(o) && o->r.lport;
}

void others_each(const struct others *os, bool listeners,
		 void (*each)(void *ctx, const struct others_edge *x), void *ctx)
{
	for (size_t i = 0; i < os->n; i++) {
		const struct net_other *o = &os->items[i];
		struct others_edge x = {.own = o};

		if (listeners ? !waits(o) : !has_peer(o))
			continue;
		if (o->r.family == AF_UNIX && listeners)
			path_of(o, x.peer);
		else if (o->r.family == AF_UNIX)
			unix_edge(os, o, &x);
		else if (!listeners)
			udp_edge(os, o, &x);
		each(ctx, &x);
	}
}
