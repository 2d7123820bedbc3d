/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish: writes what the world knows into the maps of probes/lib/tables.h: a slice of mappings
 * for each process and a slot for each file. The world reports changes as they happen; publish
 * writes them once the side-band has been read.
 *
 * 1. After each reading it writes new entries for the processes that changed. Until then the entry
 *    stays that the kernel copied at a fork. An entry never points at anything that is not written
 *    yet, nor at anything freed less than TABLES_GRACE_NS ago.
 * 2. A process known only from /proc, a kernel thread, and a process without executable mappings
 *    have no entry.
 */
#ifndef SONDE_MAPS_PUBLISH_H
#define SONDE_MAPS_PUBLISH_H

#include <stdint.h>

struct indexer;
struct mimage;
struct mp_cost;
struct proc;
struct publish;
struct tablemaps;
struct world;

/* maps: borrowed. What a predecessor left there (taken over) is kept until the first publish_tick
 * has replaced it. */
struct publish *publish_new(struct tablemaps *maps, struct world *w);
/* What the tables' generation will be once publish_new has them. */
uint32_t publish_generation(const struct tablemaps *maps);
/* Where indexes come from; before the first publish_tick. */
void publish_use_indexer(struct publish *pub, struct indexer *ix);
void publish_free(struct publish *pub); /* NULL is fine, here and below */
/* Write what has changed. The side-band is read up to as_of_ns. */
void publish_tick(struct publish *pub, uint64_t as_of_ns);

/* An index has come: the next publish_tick looks at all files. */
void publish_news(struct publish *pub);

/* Fills in what struct mp_cost says of tables. */
void publish_cost(const struct publish *pub, struct mp_cost *out);

/* ---- called by the world ---- */

void publish_image_new(struct publish *pub, struct mimage *img);
void publish_image_gone(struct publish *pub, struct mimage *img);
void publish_proc_gone(struct publish *pub, struct proc *p, uint64_t time_ns);

#endif
