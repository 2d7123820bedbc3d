/* SPDX-License-Identifier: Apache-2.0 */
/* netprint: connections, listeners and the map of services, for people and as JSON. */
#ifndef SONDE_TOOLS_NETPRINT_H
#define SONDE_TOOLS_NETPRINT_H

#include <jansson.h>
#include <stdio.h>

#include "schema/base/strbuf.h"
#include "tools/net/netflows.h"
#include "tools/net/netmap.h"
#include "tools/print/table.h"

/* "3 refused, 1 timed out", "" of none. `sums` as in a row. */
void netprint_troubles(struct strbuf *out, const uint64_t sums[NET_SUMS]);

/* The same of an edge, and how many requests over it were errors. */
void netprint_edge_troubles(struct strbuf *out, const struct netmap_edge *x);
/* "12 requests are not shown: ..."; "" where each has one. */
void netprint_unplaced(struct strbuf *out, const struct netmap *m);

struct table *netprint_flows(const struct netflows *f, size_t n);
json_t *netprint_flow_json(const struct netflows_row *r);
struct table *netprint_listeners(const struct netlisteners *l, size_t n);
json_t *netprint_listener_json(const struct netlisteners_row *r);
struct table *netprint_map(const struct netmap *m);
json_t *netprint_edge_json(const struct netmap *m, const struct netmap_edge *x);
/* For Graphviz: `dot -Tsvg`. */
void netprint_dot(const struct netmap *m, struct strbuf *out);

#endif
