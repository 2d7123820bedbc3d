/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub: those who listen. Messages go to all seeded clients, packed into packets as large as the
 * protocol allows. Nobody is waited for: what a client does not take at once is queued, and a
 * client whose queue grows past its bound loses it all and is seeded anew (MP_LOST, then
 * everything).
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
	/* Emit the whole state now (hub_emit goes to the one who needs it). */
	void (*dump)(void *ctx);
	/* A client asks for an index; flags: enum mp_want_flags. */
	void (*want)(void *ctx, uint32_t image, uint32_t flags);
	/* A client waits for a watermark of now. */
	void (*hurry)(void *ctx);
	/* Each message as it is sent to all, for --print; may be NULL. */
	void (*print)(void *ctx, const struct mapspack_msg *msg);
};

/* epoll_fd: client descriptors are put there, with the client as data.ptr given back to hub_ready.
 * tables (borrowed while the hub lives): what each client is given right after the hello, by enum
 * mp_tables_map; NULL: there are none. */
struct hub *hub_new(const struct hub_ops *ops, int epoll_fd, const int *tables,
		    uint32_t generation);
/* There is no BPF program: those already greeted are greeted again, as all from now on, without
 * tables. */
void hub_degrade(struct hub *h);
void hub_free(struct hub *h);
/* Listen at `path` (replaces a socket nobody answers at). Returns the descriptor to poll, or
 * -errno. */
int hub_listen(struct hub *h, const char *path, struct err *e);
void hub_accept(struct hub *h);
/* A connected socket (taken), of the owner: when it goes, hub_orphaned says so. Where others are
 * listened for, it is told what is for whoever watches (hello, tables, hub_emit_cost), and not what
 * happens on the host. */
void hub_own(struct hub *h, int fd);
bool hub_orphaned(const struct hub *h);
/* `ptr` as epoll gave it back: true if it was a client's. */
bool hub_ready(struct hub *h, void *ptr, uint32_t events);

void hub_emit(struct hub *h, uint32_t type, const void *fixed, const char *const *str);
/* MP_INDEX with its descriptor (borrowed; -1: none). */
void hub_emit_index(struct hub *h, const struct mp_index *m, const char *key, const char *reason,
		    int fd);
/* MP_COST: to each client the whole and its share; to an owner that watches too. */
void hub_emit_cost(struct hub *h, const struct mp_cost *m);
/* Send what was emitted. */
void hub_flush(struct hub *h);
/* While muted nothing is sent: the state is being read anew, and hub_reseed_all will tell it. */
void hub_mute(struct hub *h, bool mute);
/* The seed is complete: clients are seeded from now on, those already there first. */
void hub_open(struct hub *h);
/* Side-band was lost: LOST to all, then the whole state again. */
void hub_reseed_all(struct hub *h, uint64_t time_ns, uint64_t records);

#endif
