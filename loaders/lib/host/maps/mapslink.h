/* SPDX-License-Identifier: Apache-2.0 */
/* mapslink: starts sonde-maps or connects to one, and reads packets from its socket. */
#ifndef SONDE_HOST_MAPSLINK_H
#define SONDE_HOST_MAPSLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "loaders/lib/host/maps/mapsproto.h"
#include "schema/base/err.h"

/* Path of sonde-maps in this program's folder; the caller frees it. */
char *maps_link_program(void);
/* Start it as a child with a private socket; store_dir and args_policy may be NULL. tables
 * (borrowed): the BPF maps of its predecessor, which it takes over; -1 in each: none. */
int maps_link_start(const char *program, char *store_dir, char *args_policy, bool no_lines,
		    const int tables[MP_TABLES_N], pid_t *child, int *fd, struct err *e);
int maps_link_connect(const char *path, int *out, struct err *e);
/* One packet and its descriptors (the caller closes them; -1: none). 1; 0: no packet; -EPIPE: the
 * other side is gone; -EPROTO: longer than `cap`. Does not wait. */
int maps_link_receive(int sock, void *packet, size_t cap, size_t *len, int fds[MP_FDS_MAX]);
/* It ends by itself once its socket is closed; after a second it is killed. <= 0: nothing to end.
 */
void maps_link_end(pid_t child);

#endif
