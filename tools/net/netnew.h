/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netnew: who talks to whom in a window and did not in the time before: edges of the map of services (netmap.h) that the map of the time before has not.
 * Nothing where family net was not recorded in both.
 */
#ifndef SONDE_TOOLS_NETNEW_H
#define SONDE_TOOLS_NETNEW_H

#include <jansson.h>

#include "schema/base/strbuf.h"
#include "tools/net/netmap.h"

#define NETNEW_MOST 8 /* lines of text */

struct netnew {
	struct netmap map;      /* of the window */
	size_t *edges; size_t n; /* of the map, the earliest first */
};

int netnew_read(const struct selection *before, const struct selection *after, struct netnew *out, struct err *e);
void netnew_release(struct netnew *x);
/* "nextcloud to 1.2.3.4, tcp 443: 3 opened, 1 refused". Names are shown. */
void netnew_say(const struct netnew *x, size_t i, struct strbuf *out);
/* UTC. */
int64_t netnew_since_ns(const struct netnew *x, size_t i);
json_t *netnew_json(const struct netnew *x);
/* Lines of text, with a headline; nothing where there is none. */
void netnew_print(const struct netnew *x, FILE *out);

#endif
