/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netfar: connections between hosts whose stores are read together. Each host recorded its end,
 * with an address for the other one. An address does not identify a host (two hosts may both have
 * 172.17.0.2, and one may be translated). What identifies a connection is a mark that both hosts
 * recorded of it (view flow_marks): different connections never share one.
 *
 * 1. A client's row that shares a mark with another host's server has that server as its other end,
 *    and the other way round.
 * 2. So has a client's row to the same address and port, from the same container or from outside of
 *    containers of the same host, if it has no known mark and the marks of the others all lead to
 *    one server.
 * 3. A client's row that several servers share marks with (one address with a load balancer) is
 *    left out: the servers' own rows count.
 */
#ifndef SONDE_TOOLS_NETFAR_H
#define SONDE_TOOLS_NETFAR_H

#include "tools/net/netflows.h"

/* `f` was read by process. */
int netfar_join(const struct selection *sel, struct netflows *f, struct err *e);

#endif
