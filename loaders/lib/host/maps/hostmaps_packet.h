/* SPDX-License-Identifier: Apache-2.0 */
/* hostmaps_packet: the part of hostmaps that needs no socket, for its tests and fuzzer. */
#ifndef SONDE_HOST_HOSTMAPS_PACKET_H
#define SONDE_HOST_HOSTMAPS_PACKET_H

#include <stddef.h>

#include "loaders/lib/host/maps/mapsproto.h"

struct hostmaps;

/* An unconnected one; hostmaps_close frees it. */
struct hostmaps *hostmaps_new(void);
/* Take in one packet; fds: its descriptors (borrowed), -1 for none. 0; -EBADMSG, -EPROTO: it cannot
 * be parsed. */
int hostmaps_packet(struct hostmaps *hm, const void *packet, size_t len, const int fds[MP_FDS_MAX]);

#endif
