/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netnew: who talks to whom in a window and did not in the time before: edges of the map of
 * services (netmap.h) that the map of the time before has not. Nothing where family net was not
 * recorded in both.
 */
#ifndef SONDE_TOOLS_NETNEW_H
#define SONDE_TOOLS_NETNEW_H

#include <jansson.h>

#include "schema/base/idmap.h"
#include "schema/base/strbuf.h"
#include "tools/net/netmap.h"

#define NETNEW_MOST 8 /* lines of text */

struct netnew {
	struct netmap map; /* of the window */
	size_t *edges;
	size_t n; /* of the map, the earliest first */
};

/* To follow: the edges of the window that are not in `known`, and those with their first trouble;
 * both are then added to it. None if net was not recorded. */
int netnew_follow(const struct selection *sel, struct idmap *known, struct netnew *out,
		  struct err *e);
int netnew_read(const struct selection *before, const struct selection *after, struct netnew *out,
		struct err *e);
void netnew_release(struct netnew *x);
/* "nextcloud to 1.2.3.4, tcp 443: 3 opened, 1 refused". Names are shown. */
void netnew_say(const struct netnew *x, size_t i, struct strbuf *out);
/* As in `map`, with the text and since when. */
json_t *netnew_edge_json(const struct netnew *x, size_t i);
json_t *netnew_json(const struct netnew *x);
/* Lines of text, with a headline; nothing if there are no edges. */
void netnew_print(const struct netnew *x, FILE *out);

#endif
