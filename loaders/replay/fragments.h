/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fragments: fragments of IP packets become packets (RFC 791, 8200; RFC 5722: one whose fragments
 * overlap is dropped, but for one that came twice). Of a packet whose rest does not come within 30
 * s its first fragment is given as it is.
 *
 * Bounds: FRAGMENTS_PACKETS at a time (the oldest goes), FRAGMENTS_PIECES of each.
 */
#ifndef SONDE_REPLAY_FRAGMENTS_H
#define SONDE_REPLAY_FRAGMENTS_H

#include "loaders/replay/packet.h"

#define FRAGMENTS_PACKETS 128
#define FRAGMENTS_PIECES  64

struct fragments;

struct fragments *fragments_new(void);
void fragments_free(struct fragments *f);
/* `p` is a fragment. True: *whole is now there, until the next call. */
bool fragments_add(struct fragments *f, const struct packet *p, int64_t at_ns,
		   struct packet *whole);
/* One that is given up by now (`all`: whenever it came): true, its first fragment in *first if that
 * came (else PACKET_OTHER), until the next call, and in *n how many fragments there were. */
bool fragments_give_up(struct fragments *f, int64_t now_ns, bool all, struct packet *first,
		       uint64_t *n);

#endif
