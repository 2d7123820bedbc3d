/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish: what the world knows, as the probes need it: a slice of mappings for each process and a
 * slot for each file, in the maps of probes/lib/tables.h. The world calls it as things happen; it
 * writes when the side-band has been read.
 *
 * 1. After each reading the processes of which something changed get a new entry. What the kernel
 *    copied at a fork stands until then. An entry never points at what is not there yet, nor at
 *    what was given away less than TABLES_GRACE_NS ago.
 * 2. A process that is known from /proc alone, a kernel thread, and one without executable mappings
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

/* Fills in what struct mp_cost says of tables. */
void publish_cost(const struct publish *pub, struct mp_cost *out);

/* ---- called by the world ---- */

void publish_image_new(struct publish *pub, struct mimage *img);
void publish_image_gone(struct publish *pub, struct mimage *img);
void publish_proc_gone(struct publish *pub, struct proc *p, uint64_t time_ns);

#endif
