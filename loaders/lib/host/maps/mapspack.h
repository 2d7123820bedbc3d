/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapspack: writing and reading the messages of mapsproto.h. Reading is a pure function over bytes:
 * sizes, lengths and terminators are checked first.
 */
#ifndef SONDE_HOST_MAPSPACK_H
#define SONDE_HOST_MAPSPACK_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/maps/mapsproto.h"

struct strbuf;

#define MAPSPACK_STRINGS 7

/* The fixed part of any message. */
union mapspack_fixed {
	struct mp_head head;
	struct mp_hello hello;
	struct mp_process process;
	struct mp_exit exit;
	struct mp_used used;
	struct mp_image image;
	struct mp_index index;
	struct mp_map map;
	struct mp_watermark watermark;
	struct mp_lost lost;
	struct mp_cost cost;
	struct mp_container container;
	struct mp_want want;
	struct mp_args args;
	struct mp_want_args want_args;
	struct mp_want_names want_names;
	struct mp_tables tables;
};

struct mapspack_msg {
	uint32_t type;
	union mapspack_fixed m;
	const char *str[MAPSPACK_STRINGS]; /* borrowed, NUL-terminated; NULL if the type has none */
};

/* Add a message to `out`: `fixed` with all fields set but head and string lengths; `str` has as
 * many strings as the type carries (NULL counts as ""). Strings are cut at 16000 bytes. */
void mapspack_add(struct strbuf *out, uint32_t type, const void *fixed, const char *const *str);
/* The next message of a packet: *pos starts at 0. 1: *out is filled; 0: no more; -EBADMSG. */
int mapspack_next(const void *packet, size_t len, size_t *pos, struct mapspack_msg *out);

#endif
