/* SPDX-License-Identifier: Apache-2.0 */
/* hub_parts: hub as its own files see it. */
#ifndef SONDE_MAPS_HUB_PARTS_H
#define SONDE_MAPS_HUB_PARTS_H

#include "loaders/lib/host/maps/mapspack.h"
#include "loaders/maps/hub/hub.h"
#include "schema/base/strbuf.h"

struct packet {
	struct packet *next;
	size_t len;
	int fds[MP_FDS_MAX]; /* sent with it, owned */
	size_t n_fds;
	bool seed;
	char data[];
};

struct client {
	struct client *next;
	struct hub *hub;
	int fd;
	bool owner, watches, seeded, lost, dead, books;
	struct mp_cost_share share;
	uint32_t events; /* epoll's */
	struct packet *head, **tail;
	size_t queued, queued_fds;
	uint64_t lost_ns;
};

struct hub {
	struct hub_ops ops;
	int epoll_fd, listen_fd;
	const int *tables;
	uint32_t generation;
	bool degraded, open, orphaned, muted;
	char *path;
	struct client *clients;
	size_t n;
	struct mp_cost_share shared; /* of the whole, as far as it is in some client's share */
	struct strbuf packet;        /* to all */
	struct client *dumping;      /* not NULL: to this one alone */
	struct strbuf dump;
};

/* ---- hub_client.c ---- */

void hub_client_clear(struct client *c); /* what waits for it */
/* At once if it can be, else queued; fds are borrowed. seed: however much it is. A client that is
 * too slow loses all, and is told so. */
void hub_client_send(struct client *c, const void *data, size_t len, const int *fds, size_t n_fds,
		     bool seed);
/* Before all else, and before the seed is there: who we are, and the maps that its programs are
 * loaded with. */
void hub_client_greet(struct client *c);
void hub_client_seed(struct client *c);
void hub_client_reseed(struct client *c, uint64_t time_ns, uint64_t records); /* after a loss */
void hub_client_write(struct client *c);                                      /* it can take more */
void hub_client_read(struct client *c); /* it asks, or is gone */

#endif
