/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub: the clients. It sends each message to all seeded clients, packed into packets as large as
 * the protocol allows. It never waits for a client: it queues what the socket does not accept at
 * once. When the queue of a client grows past its limit, the hub drops it and seeds the client
 * again (MP_LOST, then the whole state).
 */
#ifndef SONDE_MAPS_HUB_H
#define SONDE_MAPS_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/maps/mapspack.h"
#include "schema/base/err.h"

struct hub;

struct hub_ops {
	void *ctx;
	/* Emit the whole state now (hub_emit sends it only to the client that needs it). */
	void (*dump)(void *ctx);
	/* A client asks for an index. */
	void (*want)(void *ctx, const struct mp_want *want);
	/* A client asks for the arguments of a program. */
	void (*want_args)(void *ctx, const struct mp_want_args *want);
	void (*want_names)(void *ctx, const struct mp_want_names *want);
	/* A client waits for a watermark of the present time. */
	void (*hurry)(void *ctx);
	/* Each message as it is sent to all, for --print; may be NULL. */
	void (*print)(void *ctx, const struct mapspack_msg *msg);
};

/* The hub adds client descriptors to epoll_fd, with data.ptr = the client, for hub_ready. tables
 * (borrowed while the hub lives): the descriptors that each client gets right after the hello, by
 * enum mp_tables_map; NULL: none. */
struct hub *hub_new(const struct hub_ops *ops, int epoll_fd, const int *tables,
		    uint32_t generation);
/* There is no BPF program: greet all clients again, and all later ones, without tables. */
void hub_degrade(struct hub *h);
void hub_free(struct hub *h);
/* Listen at `path` (replaces a socket without a listener). Returns the descriptor to poll, or
 * -errno. */
int hub_listen(struct hub *h, const char *path, struct err *e);
void hub_accept(struct hub *h);
/* The owner's connected socket (the hub takes it): when the owner closes it, hub_orphaned returns
 * true. If the hub also listens at a path, the owner gets the hello, the tables and hub_emit_cost,
 * but no events of the host. */
void hub_own(struct hub *h, int fd);
bool hub_orphaned(const struct hub *h);
/* `ptr` from epoll's data.ptr. true: it was a client. */
bool hub_ready(struct hub *h, void *ptr, uint32_t events);

void hub_emit(struct hub *h, uint32_t type, const void *fixed, const char *const *str);
/* MP_INDEX with its descriptor (borrowed; -1: none). */
void hub_emit_index(struct hub *h, const struct mp_index *m, const char *key, const char *reason,
		    int fd);
/* MP_COST: the total and its own share to each client, and to an owner that watches. */
void hub_emit_cost(struct hub *h, const struct mp_cost *m);
/* Send what is buffered. */
void hub_flush(struct hub *h);
/* A muted hub sends nothing: the caller reads the state again, then calls hub_reseed_all. */
void hub_mute(struct hub *h, bool mute);
/* The seed is complete: seed the connected clients, and each later one when it connects. */
void hub_open(struct hub *h);
/* Side-band records were lost: send MP_LOST to all, then the whole state again. */
void hub_reseed_all(struct hub *h, uint64_t time_ns, uint64_t records);

#endif
