/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wanted: the ring in which the probes say that they met a young process whose mappings are not
 * published (probes/lib/tables.h). Until they are its stacks are copied, and what is deeper than a
 * copy has no root: so the side-band is read and published at once rather than at the next tick.
 * Only what is sampled asks for it: a build's hundreds of processes a second, most of them shorter
 * than a sampling period, cost nothing.
 */
#ifndef SONDE_MAPS_WANTED_H
#define SONDE_MAPS_WANTED_H

struct wanted;

/* Put into epoll_fd with data.ptr = what is returned. NULL: there is no such ring. */
struct wanted *wanted_open(int ring_fd, int epoll_fd);
/* It was said, and is taken note of. */
void wanted_take(struct wanted *w);
void wanted_close(struct wanted *w); /* NULL is fine */

#endif
