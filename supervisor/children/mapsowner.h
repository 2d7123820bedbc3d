/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapsowner: sonded's end of the connection to sonde-maps, which ends when this socket closes,
 * however sonded dies. sonde-maps listens for the loaders at a path. What it publishes outlives it:
 * the descriptors of its BPF maps are kept here and passed to the next one.
 */
#ifndef SONDE_SUPERVISOR_MAPSOWNER_H
#define SONDE_SUPERVISOR_MAPSOWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/host/maps/mapsproto.h"
#include "supervisor/children/service.h"

struct mapsowner {
	struct service service;
	int sock;                /* -1: none */
	int tables[MP_TABLES_N]; /* -1 in each: none */
	uint32_t generation;     /* of the tables */
	bool replaced; /* it could not take over the tables: restart the loaders, which use the old
			  ones. The reader clears it */
	uint8_t packet[MP_PACKET_MAX];
};

void mapsowner_init(struct mapsowner *m);
void mapsowner_release(struct mapsowner *m);
/* Starts sonde-maps for a store. It listens at `socket` and keeps at most `images_mb` of image
 * indexes there; `dotnet`: it asks programs of .NET for names. */
void mapsowner_start(struct mapsowner *m, const char *store, const char *socket, const char *args,
		     unsigned int images_mb, bool dotnet, uint64_t caps);
/* Reads its messages; the service is ready once it has said hello. */
void mapsowner_read(struct mapsowner *m);
/* Closes our end, upon which it ends. */
void mapsowner_hang_up(struct mapsowner *m);

#endif
