/* SPDX-License-Identifier: Apache-2.0 */
/* world_parts: world as its own files see it: world.c has the processes and what happens to them,
 * world_images.c the files, world_seed.c what /proc says. */
#ifndef SONDE_MAPS_WORLD_PARTS_H
#define SONDE_MAPS_WORLD_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/maps/world/world.h"

/* ---- world_images.c ---- */

/* Names that are no file: image 0, but for the vDSO. */
bool world_is_anonymous(const char *path);
char *world_trim_deleted(const char *path); /* the caller's */
/* `is_new` says whether it was never seen. `name` may end in " (deleted)". NULL: anonymous. */
struct mimage *world_image_intern(struct world *w, const struct file_id *f, const char *name,
				  uint64_t len, bool *is_new);
void world_image_free(struct world *w, struct mimage *img);
void world_tell_image(struct world *w, const struct mimage *img);

/* ---- world.c ---- */

/* `value` is taken; NULL: none. What was there before is freed. */
void world_str_set(char **s, char *value);
struct proc *world_proc_add(struct world *w, uint32_t tgid);
void world_proc_fill(struct world *w, struct proc *p, const struct maps_event *ev);
void world_pending_clear(struct proc *p);
/* [start, start + len) shows that file, whose root is the process's. */
struct mimage *world_map_put(struct world *w, struct proc *p, uint64_t start, uint64_t len,
			     uint64_t pgoff, struct file_id f, const char *name, uint64_t time_ns,
			     bool tell);

/* ---- world_seed.c ---- */

void world_seed_maps(struct world *w, struct proc *p, uint64_t time_ns);

#endif
