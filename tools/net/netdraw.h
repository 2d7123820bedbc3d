/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netdraw: the map of services as a drawing: boxes for clients and servers, lines for the services
 * between them, placed by layers.h. Text is measured as a monospaced font of NETDRAW_GLYPH pixels a
 * letter. tools/page/map_page draws it in C, the served page from `sonde map --json --drawing`.
 *
 * A line represents all edges of a pair of nodes. Of more than NETDRAW_LINKS lines those with the
 * most bytes and connections are drawn, and the number of the others is shown. A line is dashed and
 * says what failed, if something did.
 */
#ifndef SONDE_TOOLS_NETDRAW_H
#define SONDE_TOOLS_NETDRAW_H

#include <jansson.h>

#include "schema/base/strbuf.h"
#include "tools/net/layers.h"
#include "tools/net/netmap.h"

#define NETDRAW_LINKS 60
#define NETDRAW_EDGES 3 /* of a line, each with its own text */
#define NETDRAW_LINES (2 * NETDRAW_EDGES + 1)
#define NETDRAW_GLYPH 6.7 /* pixels, of 11 points */
#define NETDRAW_ROW   14  /* pixels, of a line of text */

struct netdraw_node {
	size_t node;      /* in the map */
	char *label;      /* its name, cut */
	const char *said; /* what it is */
};

struct netdraw_text {
	char *text;
	bool trouble;
};

struct netdraw_link {
	size_t first_edge, n_edges; /* of the map */
	struct netdraw_text lines[NETDRAW_LINES];
	size_t n_lines;
	bool trouble;
	int thick;   /* 1 to 4: a thousand times the bytes is one more */
	char *title; /* all of it, a line an edge */
};

struct netdraw {
	const struct netmap *map;
	struct netdraw_node *nodes;
	struct layers_box *boxes;
	size_t n_nodes;
	struct netdraw_link *links;
	struct layers_link *places;
	size_t n_links;
	size_t left_out; /* lines that are not drawn */
	struct layers_size size;
};

/* The map is borrowed. */
void netdraw_make(const struct netmap *m, struct netdraw *out);
void netdraw_release(struct netdraw *d);
/* Of link `i`: its curve and the head of its arrow, as SVG paths. */
void netdraw_path(const struct netdraw *d, size_t i, struct strbuf *out);
void netdraw_head(const struct netdraw *d, size_t i, struct strbuf *out);
/* {width, height, left_out, nodes, links}; nodes and links have their places, links the rows of
 * `sonde map --json` that they represent. */
json_t *netdraw_json(const struct netdraw *d);

#endif
