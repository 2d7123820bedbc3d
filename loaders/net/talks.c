/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/talks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uthash.h>

#include "schema/base/mem.h"

struct talks_told {
	struct net_talk_key key;
	uint64_t tx, rx;
	uint32_t reading, moved; /* the last one that it was seen in, that it moved in */
	UT_hash_handle hh;
};

static void forget(struct talks *t, struct talks_told *x)
{
	HASH_DEL(t->told, x);
	free(x);
}

void talks_release(struct talks *t)
{
	struct talks_told *x, *next;

	HASH_ITER (hh, t->told, x, next)
		forget(t, x);
	free(t->keys);
	free(t->values);
	idmap_release(&t->speakers);
}

static struct talks_told *told_get(struct talks *t, const struct net_talk_key *key)
{
	struct talks_told *x;

	HASH_FIND(hh, t->told, key, sizeof(*key), x);
	if (x)
		return x;
	x = mem_alloc(sizeof(*x));
	x->key = *key;
	HASH_ADD(hh, t->told, key, sizeof(x->key), x);
	return x;
}

/* All sums at once; how many. */
static size_t fetch(struct talks *t, int fd)
{
	uint32_t batch = 0, n = NET_TALKS;
	int err;

	if (!t->keys) {
		t->keys = mem_array(NET_TALKS, sizeof(*t->keys));
		t->values = mem_array(NET_TALKS, sizeof(*t->values));
	}
	err = bpf_map_lookup_batch(fd, NULL, &batch, t->keys, t->values, &n, NULL);
	return !err || errno == ENOENT ? n : 0;
}

/* The process that uses the other end's socket is better known than the one that opened it.
 * Addresses of sockets are reused, at either end: both must name each other, as the two ends of one
 * service. */
static struct net_owner mate_of(const struct talks *t, size_t i)
{
	const struct net_talk *v = t->values;
	uint64_t at;

	if (v[i].peer_sk && idmap_get(&t->speakers, v[i].peer_sk, &at) &&
	    v[at].peer_sk == v[i].sk && t->keys[at].at[0] == t->keys[i].at[0] &&
	    t->keys[at].side != t->keys[i].side)
		return t->keys[at].owner;
	return t->values[i].mate;
}

static void take(struct talks *t, size_t i, int64_t known_ns,
		 void (*each)(void *ctx, const struct talks_sum *x), void *ctx)
{
	struct talks_told *told = told_get(t, &t->keys[i]);
	const struct net_talk *now = &t->values[i];
	struct talks_sum x = {.key = t->keys[i], .now = *now};

	told->reading = t->reading;
	if (now->tx < told->tx || now->rx < told->rx)
		told->tx = told->rx = 0; /* it was removed, and began again */
	x.tx = now->tx - told->tx;
	x.rx = now->rx - told->rx;
	x.mate = mate_of(t, i);
	if (x.tx || x.rx)
		told->moved = t->reading;
	if ((!x.tx && !x.rx) || (int64_t)x.key.owner.start_ns > known_ns ||
	    (int64_t)x.mate.start_ns > known_ns)
		return;
	told->tx = now->tx;
	told->rx = now->rx;
	each(ctx, &x);
}

static void still_drop(struct talks *t, int fd)
{
	struct talks_told *x, *next;

	HASH_ITER (hh, t->told, x, next) {
		if (x->reading == t->reading && t->reading - x->moved < TALKS_STILL)
			continue;
		if (x->reading == t->reading)
			bpf_map_delete_elem(fd, &x->key);
		forget(t, x);
	}
}

void talks_read(struct talks *t, int fd, int64_t known_ns,
		void (*each)(void *ctx, const struct talks_sum *x), void *ctx)
{
	size_t n = fd >= 0 ? fetch(t, fd) : 0;

	t->reading++;
	idmap_clear(&t->speakers);
	for (size_t i = 0; i < n; i++)
		idmap_set(&t->speakers, t->values[i].sk, i);
	for (size_t i = 0; i < n; i++)
		take(t, i, known_ns, each, ctx);
	still_drop(t, fd);
}

/* The key as net_talk.bpf.h makes it. */
bool talks_quic(int fd, const struct net_other *o)
{
	struct net_talk_key key = {.owner = o->r.owner,
				   .netns = o->r.netns,
				   .family = o->r.family,
				   .port = o->r.dport};
	struct net_talk now;

	if (fd < 0 || o->r.family == AF_UNIX || !o->r.dport)
		return false;
	if (o->r.lport < o->r.dport && o->r.lport < NET_EPHEMERAL)
		key.lport = o->r.lport;
	memcpy(key.at, o->r.peer, sizeof(key.at));
	if (!bpf_map_lookup_elem(fd, &key, &now))
		return now.quic;
	if (o->r.family != AF_INET)
		return false;
	key.family = AF_INET6; /* it may be an IPv4-mapped one there */
	memcpy(key.at, (const uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12);
	memcpy((uint8_t *)key.at + 12, o->r.peer, 4);
	return !bpf_map_lookup_elem(fd, &key, &now) && now.quic;
}
