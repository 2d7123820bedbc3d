/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tablemaps: the BPF maps of probes/lib/tables.h: created here or taken over from a previous
 * sonde-maps, and written through mmap. `rows` is large and counts as our memory while it is
 * mapped, so only the pieces being written are mapped, or all of it for a while when many writes
 * follow (tablemaps_hold); the other maps stay mapped.
 */
#ifndef SONDE_MAPS_TABLEMAPS_H
#define SONDE_MAPS_TABLEMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "loaders/lib/host/maps/mapsproto.h"
#include "probes/runtimes/runtime.h"
#include "probes/lib/tables.h"

#define TABLEMAPS_ROWS_MB     21
#define TABLEMAPS_ROWS_MB_MAX 4096
/* Elements for mappings: 2 MiB, some 52 000 of them; on a host with many processes more, up to
 * 16 MiB. */
#define TABLEMAPS_MAPPINGS      (256u << 10)
#define TABLEMAPS_MAPPINGS_MOST (2u << 20)
#define TABLEMAPS_MAPPINGS_EACH 768 /* for one process: 50 that are code, three times over */

struct tablemaps {
	int fd[MP_TABLES_N];         /* by enum mp_tables_map */
	uint32_t n_rows, n_mappings; /* elements */
	uint64_t *mappings;
	struct tables_image *images;
	struct tables_state *state;
	struct tables_runtime *runtimes;
	uint64_t *held; /* all rows, or NULL */
	bool taken_over;
};

/* -1 in each: a struct to begin with. */
#define TABLEMAPS_NONE                               \
	{                                            \
		.fd = { -1, -1, -1, -1, -1, -1, -1 } \
	}

/* `from` (borrowed; NULL or -1 in it: none): the maps of a predecessor. They are taken over if they
 * are what we would make, whatever their size; else new ones are made. 0 or -errno. */
int tablemaps_open(struct tablemaps *t, uint32_t rows_mb, const int from[MP_TABLES_N]);
void tablemaps_close(struct tablemaps *t);
/* What the kernel charges for them. */
uint64_t tablemaps_bytes(const struct tablemaps *t);
/* A piece of `rows`, mapped as long as it is held. */
struct tablemaps_window {
	void *base;
	size_t bytes;
	uint64_t *at; /* its first element */
};

/* Elements [first, first + n). 0 or -errno. */
int tablemaps_window_open(const struct tablemaps *t, uint32_t first, uint32_t n,
			  struct tablemaps_window *w);
/* The same for a moment: until the close, and no longer than the hold. While all rows are held it
 * costs no system call. */
int tablemaps_window_borrow(const struct tablemaps *t, uint32_t first, uint32_t n,
			    struct tablemaps_window *w);
void tablemaps_window_close(struct tablemaps_window *w); /* a zeroed one is fine */
/* Many pieces will follow: mapping each, a large file's parts say, costs more than mapping all rows
 * once (a quarter to a half of the CPU that sonde-maps takes to begin with, where clang, rustc and
 * node run). Held twice is held once; where it fails, each piece is mapped as ever. */
void tablemaps_hold(struct tablemaps *t);
void tablemaps_let_go(struct tablemaps *t); /* nothing held is fine */
/* Copy `n` elements into `rows` from `first` on, or compare them. -errno: they could not be mapped.
 */
int tablemaps_rows_write(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n);
/* 1: equal, 0: not. */
int tablemaps_rows_equal(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n);

#endif
