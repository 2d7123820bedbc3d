/* SPDX-License-Identifier: Apache-2.0 */
/* hostmaps_packet: the part of hostmaps that needs no socket, for its tests and fuzzer. */
#ifndef SONDE_HOST_HOSTMAPS_PACKET_H
#define SONDE_HOST_HOSTMAPS_PACKET_H

#include <stddef.h>

#include "loaders/lib/host/maps/mapsproto.h"

struct hostmaps;

/* One that is connected to nobody; hostmaps_close frees it. */
struct hostmaps *hostmaps_new(void);
/* Take in one packet; fds: what came with it (borrowed), -1 where none did. 0; -EBADMSG, -EPROTO:
 * not to be understood. */
int hostmaps_packet(struct hostmaps *hm, const void *packet, size_t len, const int fds[MP_FDS_MAX]);

#endif
