/* SPDX-License-Identifier: Apache-2.0 */
/* private: what the files of publish share. publish.c has the processes, publish_images.c the
 * images, publish_room.c the room for their rows, publish_hot.c the rows of large ones,
 * publish_runtimes.c the interpreters, publish_take.c the tables of a predecessor. */
#ifndef SONDE_MAPS_PUBLISH_PRIVATE_H
#define SONDE_MAPS_PUBLISH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/maps/mapset.h"
#include "loaders/maps/publish/entries.h"
#include "loaders/maps/publish/publish.h"
#include "loaders/maps/publish/rowsets.h"
#include "loaders/maps/publish/slices.h"
#include "loaders/maps/publish/slots.h"
#include "schema/image/image.h"

#define PIMAGE_SEGMENTS                                                           \
	8 /* executable segments of a file; mappings of further ones have no rows \
	   */

/* What the tables have of one file. */
struct pimage {
	struct mimage *img;
	uint32_t slot; /* 0: no slot was free */
	enum tables_image_state state;
	struct rowset *rows; /* while READY */
	uint64_t text_base;
	uint32_t runtime;       /* tables_image.runtime */
	uint32_t process_flags; /* TABLES_PROCESS_* of the processes that map it */
	struct image_exec segments[PIMAGE_SEGMENTS];
	uint32_t n_segments; /* not 0: text_base and segments are known, and its mappings have their
				row distance */
	uint64_t since_ns, ready_ns;
	uint64_t used_ns;    /* 0: not since it became READY */
	uint64_t evicted_ns; /* not 0: it lost its rows, but keeps its slot */
	uint32_t need;       /* elements that found no room */
	uint64_t waits_ns;   /* since when */
	uint64_t retry_ns;   /* not before */
	uint32_t users;      /* processes that map it; as last counted */
	bool sampled;        /* for sorting */
	bool asked;          /* its index was requested from the indexer */
	bool moved;          /* to another slot: each process that maps it needs a new slice */
	struct image *index; /* own: open while its parts are loaded */
	bool index_sound;    /* its rows were checked when it was opened */
	uint64_t index_ns;   /* last used */
	struct pimage *prev, *next;
};

struct publish {
	struct tablemaps *maps;
	struct world *world;
	struct indexer *indexer;
	struct slices slices;
	struct slots slots;
	struct rowsets rowsets;
	struct entries entries;
	struct pimage *open;     /* pending images, whose state may change without an event */
	struct pimage *settled;  /* the others */
	struct heir *heir;       /* what a predecessor left; NULL: nothing, or no longer */
	struct pimage *claimant; /* the room being made is for this image only */
	uint64_t claimed_ns;
	uint64_t *words; /* one slice, being made */
	uint64_t as_of_ns, swept_ns, counted_ns, asked_ns, entries_swept_ns, evicted, hot_room_ns,
		hot_look_ns, images_look_ns, rows_cpu_ns;
	uint64_t refused; /* slices that found no room */
	bool any_moved;   /* to another slot, since the processes were last updated */
	bool news;        /* a file or an index has come since the images were last looked over */
	bool told_slices, told_rows, told_runtimes;
};

/* ---- publish_images.c ---- */

/* Publish rows that have arrived, request those that are missing. */
void publish_images_tick(struct publish *pub, uint64_t now_ns);
void publish_images_release(struct publish *pub);
/* The difference between an address in the mapping and its row address. false: it is in no
 * executable segment. */
bool publish_row_distance(const struct pimage *pi, const struct mapping *m, uint64_t *out);

/* `open` lists PENDING images, `settled` the others. The slot is not changed. */
void publish_set_state(struct publish *pub, struct pimage *pi, enum tables_image_state state);

/* ---- publish_runtimes.c ---- */

/* The element of `runtimes` for the interpreter in this file; 0: none. */
uint32_t publish_runtime(struct publish *pub, const struct image *index, uint64_t text_base);
/* TABLES_PROCESS_* flags for each process that maps the file. */
uint32_t publish_process_flags(const struct image *index);

/* ---- publish_room.c ---- */

/* Has a probe used it since the last publish_sweep_use? */
bool publish_is_used(const struct publish *pub, const struct pimage *pi);
void publish_sweep_use(struct publish *pub, uint64_t now_ns);
/* Count how many processes map each file; limits how often it does so. */
void publish_count_users(struct publish *pub, uint64_t now_ns);
/* The image to make room for next; then, for each image that only lacks rows: may it take them now?
 */
void publish_choose_claimant(struct publish *pub, uint64_t now_ns);
bool publish_is_due(struct publish *pub, struct pimage *pi, uint64_t now_ns);
void publish_disclaim(struct publish *pub, const struct pimage *pi);
/* May it lose its rows, for another image that is used (or not)? */
bool publish_is_idle(const struct publish *pub, const struct pimage *pi, bool for_used,
		     uint64_t now_ns);
void publish_evict(struct publish *pub, struct pimage *pi, uint64_t now_ns);

/* ---- publish_hot.c ---- */

/* Fills a set that was just made. */
void publish_hot_fill(struct publish *pub, struct rowset *set, const struct unwind_section *s);
/* Load the parts that probes asked for. */
void publish_hot_tick(struct publish *pub, uint64_t now_ns);
void publish_hot_close(struct pimage *pi);

/* ---- publish_take.c ---- */

void publish_take_over(struct publish *pub);
/* Everything has been published again: free what is left of the predecessor. */
void publish_let_go(struct publish *pub, uint64_t now_ns);

#endif
