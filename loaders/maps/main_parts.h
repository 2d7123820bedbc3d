/* SPDX-License-Identifier: Apache-2.0 */
/* main_parts: sonde-maps as its own two files see it: main.c makes the parts, loop.c runs them. */
#ifndef SONDE_MAPS_MAIN_PARTS_H
#define SONDE_MAPS_MAIN_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/budget/pace.h"
#include "loaders/maps/cmdline.h"
#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/world/world.h"

struct cache;
struct exec_race;
struct side_band_feed;
struct hub;
struct indexer;
struct publish;
struct wanted;

/* What is done now and then: when next. */
struct due {
	int64_t reconcile_ns, act_ns, sweep_ns, cpus_ns, ask_ns, cost_ns, memory_ns;
};

struct maps {
	int64_t soon_ns; /* read again then; 0: not before the next tick */
	bool tell_soon;  /* and tell what was read */
	struct pace pace;
	struct due due;
	struct cmdline o;
	int epoll_fd, signal_fd, listen_fd;
	struct world world;
	struct side_band_feed *feed;
	struct hub *hub;
	struct cache *cache;
	struct indexer *indexer;
	struct exec_race *early;
	struct wanted *wanted;
	struct tablemaps tables;
	struct publish *publish;
	uint64_t good_ns; /* the last T at which nothing was lost */
	uint64_t cpus_ns; /* the last T at which every CPU's event was known to live */
	uint64_t rss, private, tables_bytes;
	bool stop;
};

/* ---- loop.c ---- */

/* Until somebody stops it, or the client goes that it was started for. */
void maps_loop(struct maps *m);
/* For the hub: a client waits for what has happened up to now. ctx: struct maps. */
void maps_hurry(void *ctx);

#endif
