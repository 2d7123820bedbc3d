/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netfar: connections between hosts whose stores are asked together. Each host has rows of its own
 * end, with an address for the other: addresses do not tell whose they are (two hosts may both have
 * 172.17.0.2, and one be translated). What tells is a mark that both have of the same connection
 * (view flow_marks): never two of different ones.
 *
 * 1. A client's row that shares a mark with another host's server has that server as its other end,
 * and the other way round.
 * 2. So has a client's row to the same address and port, from the same container or from outside of
 * containers of the same host, where no mark of its own is known and those of the others say one
 * server.
 * 3. A client's row that several servers share marks with (one address, and who divides what comes
 * there) stands for none of them: theirs do.
 */
#ifndef SONDE_TOOLS_NETFAR_H
#define SONDE_TOOLS_NETFAR_H

#include "tools/net/netflows.h"

/* `f` was read by process. */
int netfar_join(const struct selection *sel, struct netflows *f, struct err *e);

#endif
