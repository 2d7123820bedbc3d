/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netasked: what was asked over the edges of a map, from requests of the same selection
 * (tools/requests/reqrows.h).
 *
 * What clients saw belongs to the edge from them to the service that they asked, by its port and,
 * where several are there, by its address. What servers saw belongs to the one edge that leads to
 * their port, where its client's end was not seen. Where several lead there, nothing tells who
 * asked: such requests are counted beside the map, and no edge has a guess.
 */
#ifndef SONDE_TOOLS_NETASKED_H
#define SONDE_TOOLS_NETASKED_H

#include "tools/net/netmap.h"
#include "tools/requests/reqrows.h"

/* Requests of the selection are added to the map. */
int netasked_read(const struct selection *sel, struct netmap *m, struct err *e);
/* The same of rows that were read by end. */
void netasked_of(const struct reqrows *r, struct netmap *m);

#endif
