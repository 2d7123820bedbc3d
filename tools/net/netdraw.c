/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netdraw.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/net/netprint.h"
#include "tools/print/json.h"
#include "tools/print/term.h"

#define NAME_COLUMNS     26
#define LINE_COLUMNS     44
#define BOX_HEIGHT       38
#define BOX_LEAST        96
#define PADDING          10
#define HEAD             7
#define DOT              " \xc2\xb7 "
#define CONNECTION_BYTES 4096 /* what a connection weighs in addition to its bytes */

static const char *const SAID[] = {
	[NETMAP_CONTAINER] = "container",
	[NETMAP_COMMAND] = "on this host",
	[NETMAP_ADDRESS] = "elsewhere",
	[NETMAP_CLASS] = "clients elsewhere",
};

static int text_width(const char *text)
{
	return (int)((double)term_columns(text) * NETDRAW_GLYPH + 0.999);
}

static uint64_t edge_bytes(const struct netmap_edge *x)
{
	return x->sums[NET_TX] + x->sums[NET_RX];
}

/* --- words --- */

static void add_requests(const struct netmap_edge *x, struct strbuf *out)
{
	char buf[32], us[24];

	if (x->asked.requests)
		strbuf_addf(out, DOT "%s requests",
			    units_count(x->asked.requests, buf, sizeof(buf)));
	if (x->asked.answered)
		strbuf_addf(out, DOT "p95 %s",
			    units_ns((int64_t)reqrows_quantile(&x->asked, 0.95), us, sizeof(us)));
}

static void edge_service(const struct netmap_edge *x, struct strbuf *out)
{
	strbuf_addstr(out, x->protocol);
	if (x->port)
		strbuf_addf(out, " %lld", (long long)x->port);
}

/* How much; each number behind a dot. Requests say more than connections and bytes, and there is
 * not room for all. */
static void edge_brief(const struct netmap_edge *x, struct strbuf *out)
{
	char buf[32];

	if (x->asked.requests) {
		add_requests(x, out);
		return;
	}
	if (x->sums[NET_OPENED])
		strbuf_addf(out, DOT "%s opened",
			    units_count(x->sums[NET_OPENED], buf, sizeof(buf)));
	else if (x->open_now > 0)
		strbuf_addf(out, DOT "%s open",
			    units_count((uint64_t)x->open_now, buf, sizeof(buf)));
	if (edge_bytes(x))
		strbuf_addf(out, DOT "%s", units_bytes(edge_bytes(x), buf, sizeof(buf)));
}

static void edge_title(const struct netdraw *d, const struct netmap_edge *x, const char *trouble,
		       struct strbuf *out)
{
	const char *from = d->map->nodes[x->from].name, *to = d->map->nodes[x->to].name;
	char buf[32];

	strbuf_addshown(out, from, strlen(from));
	strbuf_addstr(out, " to ");
	strbuf_addshown(out, to, strlen(to));
	strbuf_addstr(out, ", ");
	edge_service(x, out);
	strbuf_addf(out, ": %s opened", units_count(x->sums[NET_OPENED], buf, sizeof(buf)));
	strbuf_addf(out, ", %s out", units_bytes(x->sums[NET_TX], buf, sizeof(buf)));
	strbuf_addf(out, ", %s in", units_bytes(x->sums[NET_RX], buf, sizeof(buf)));
	if (x->sums[NET_RTT_N])
		strbuf_addf(out, ", round trip %s",
			    units_ns((int64_t)(x->sums[NET_RTT_SUM] / x->sums[NET_RTT_N] * 1000),
				     buf, sizeof(buf)));
	add_requests(x, out);
	if (*trouble)
		strbuf_addf(out, "; %s", trouble);
}

static void line_add(struct netdraw_link *l, const char *sign, const char *text, bool trouble)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&s, sign);
	term_add_middle(&s, text, LINE_COLUMNS);
	l->lines[l->n_lines++] = (struct netdraw_text){strbuf_take(&s), trouble};
}

static void edge_lines(const struct netdraw *d, struct netdraw_link *l, size_t i,
		       struct strbuf *title)
{
	const struct netmap_edge *x = &d->map->edges[l->first_edge + i];
	struct strbuf service cleanup_strbuf = STRBUF_INIT, brief cleanup_strbuf = STRBUF_INIT,
			      trouble cleanup_strbuf = STRBUF_INIT;

	edge_service(x, &service);
	edge_brief(x, &brief);
	netprint_edge_troubles(&trouble, x);
	if (title->len)
		strbuf_addch(title, '\n');
	edge_title(d, x, strbuf_str(&trouble), title);
	l->trouble = l->trouble || trouble.len;
	if (i >= NETDRAW_EDGES)
		return;
	if (l->n_edges > 1) /* many: a line each */
		strbuf_addstr(&service, strbuf_str(&brief));
	line_add(l, "", strbuf_str(&service), false);
	if (l->n_edges == 1 && brief.len)
		line_add(l, "", strbuf_str(&brief) + strlen(DOT), false);
	if (trouble.len)
		line_add(l, "\xe2\x96\xb2 ", strbuf_str(&trouble), true);
}

static void link_words(const struct netdraw *d, struct netdraw_link *l)
{
	struct strbuf title cleanup_strbuf = STRBUF_INIT;
	uint64_t bytes = 0;
	char more[48];

	for (size_t i = 0; i < l->n_edges; i++) {
		edge_lines(d, l, i, &title);
		bytes += edge_bytes(&d->map->edges[l->first_edge + i]);
	}
	if (l->n_edges > NETDRAW_EDGES) {
		snprintf(more, sizeof(more), "and %zu more", l->n_edges - NETDRAW_EDGES);
		line_add(l, "", more, false);
	}
	l->title = strbuf_take(&title);
	for (l->thick = 1; l->thick < 4 && bytes >= 1000; bytes /= 1000)
		l->thick++;
}

/* --- what is drawn --- */

static double link_weight(const struct netdraw *d, const struct netdraw_link *l)
{
	double w = 0;

	for (size_t i = 0; i < l->n_edges; i++) {
		const struct netmap_edge *x = &d->map->edges[l->first_edge + i];

		w += (double)edge_bytes(x) +
		     CONNECTION_BYTES * (double)(x->sums[NET_ATTEMPTS] + x->sums[NET_OPENED]);
	}
	return w;
}

static const struct netdraw *sorted; /* qsort has no context */

static int by_weight(const void *a, const void *b)
{
	const struct netdraw_link *x = a, *y = b;
	double wx = link_weight(sorted, x), wy = link_weight(sorted, y);

	return wx != wy ? (wx < wy ? 1 : -1) :
			  (x->first_edge > y->first_edge) - (x->first_edge < y->first_edge);
}

static int by_edge(const void *a, const void *b)
{
	const struct netdraw_link *x = a, *y = b;

	return (x->first_edge > y->first_edge) - (x->first_edge < y->first_edge);
}

/* The map's edges are sorted by names, so those of a pair are neighbours. */
static void choose_links(struct netdraw *d)
{
	const struct netmap *m = d->map;

	d->links = mem_array(m->n_edges + 1, sizeof(*d->links));
	for (size_t i = 0; i < m->n_edges; i++) {
		struct netdraw_link *last = d->n_links ? &d->links[d->n_links - 1] : NULL;

		if (last && m->edges[last->first_edge].from == m->edges[i].from &&
		    m->edges[last->first_edge].to == m->edges[i].to)
			last->n_edges++;
		else
			d->links[d->n_links++] =
				(struct netdraw_link){.first_edge = i, .n_edges = 1};
	}
	if (d->n_links <= NETDRAW_LINKS)
		return;
	sorted = d;
	qsort(d->links, d->n_links, sizeof(*d->links), by_weight);
	d->left_out = d->n_links - NETDRAW_LINKS;
	d->n_links = NETDRAW_LINKS;
	qsort(d->links, d->n_links, sizeof(*d->links), by_edge);
}

static size_t node_of(struct netdraw *d, size_t node)
{
	const struct netmap_node *x = &d->map->nodes[node];
	struct strbuf label cleanup_strbuf = STRBUF_INIT;
	size_t i = 0;
	int w;

	while (i < d->n_nodes && d->nodes[i].node != node)
		i++;
	if (i < d->n_nodes)
		return i;
	term_add_middle(&label, x->name, NAME_COLUMNS);
	d->nodes[i] = (struct netdraw_node){
		.node = node, .label = strbuf_take(&label), .said = SAID[x->kind]};
	w = text_width(d->nodes[i].label) > text_width(d->nodes[i].said) ?
		    text_width(d->nodes[i].label) :
		    text_width(d->nodes[i].said);
	d->boxes[i] = (struct layers_box){
		.w = w + 2 * PADDING > BOX_LEAST ? w + 2 * PADDING : BOX_LEAST, .h = BOX_HEIGHT};
	return d->n_nodes++;
}

static void place(struct netdraw *d)
{
	d->nodes = mem_array(2 * d->n_links + 1, sizeof(*d->nodes));
	d->boxes = mem_array(2 * d->n_links + 1, sizeof(*d->boxes));
	d->places = mem_array(d->n_links + 1, sizeof(*d->places));
	for (size_t i = 0; i < d->n_links; i++) {
		struct netdraw_link *l = &d->links[i];
		struct layers_link *at = &d->places[i];

		link_words(d, l);
		at->from = node_of(d, d->map->edges[l->first_edge].from);
		at->to = node_of(d, d->map->edges[l->first_edge].to);
		at->h = (int)l->n_lines * NETDRAW_ROW;
		for (size_t k = 0; k < l->n_lines; k++)
			if (text_width(l->lines[k].text) + PADDING > at->w)
				at->w = text_width(l->lines[k].text) + PADDING;
	}
	d->size = layers_place(d->boxes, d->n_nodes, d->places, d->n_links);
}

void netdraw_make(const struct netmap *m, struct netdraw *out)
{
	*out = (struct netdraw){.map = m};
	choose_links(out);
	place(out);
}

void netdraw_release(struct netdraw *d)
{
	for (size_t i = 0; i < d->n_nodes; i++)
		free(d->nodes[i].label);
	for (size_t i = 0; i < d->n_links; i++) {
		for (size_t k = 0; k < d->links[i].n_lines; k++)
			free(d->links[i].lines[k].text);
		free(d->links[i].title);
	}
	layers_release(d->places, d->n_links);
	free(d->nodes);
	free(d->boxes);
	free(d->links);
	free(d->places);
	*d = (struct netdraw){0};
}

/* --- paths --- */

void netdraw_path(const struct netdraw *d, size_t i, struct strbuf *out)
{
	const struct layers_link *x = &d->places[i];

	strbuf_addf(out, "M%d %d", x->points[0].x, x->points[0].y);
	for (size_t k = 1; k < x->n_points; k++) {
		const struct layers_point *a = &x->points[k - 1], *b = &x->points[k];

		if (a->y == b->y)
			strbuf_addf(out, "H%d", b->x);
		else if (a->x == b->x) /* the end of a bow */
			strbuf_addf(out, "C%d %d %d %d %d %d", a->x + NETDRAW_ROW, a->y,
				    b->x + NETDRAW_ROW, b->y, b->x, b->y);
		else
			strbuf_addf(out, "C%d %d %d %d %d %d", (a->x + b->x) / 2, a->y,
				    (a->x + b->x) / 2, b->y, b->x, b->y);
	}
}

void netdraw_head(const struct netdraw *d, size_t i, struct strbuf *out)
{
	const struct layers_link *x = &d->places[i];
	const struct layers_point *p = &x->points[x->n_points - 1];
	int back = x->from == x->to || p->x < x->points[0].x ? HEAD : -HEAD;

	strbuf_addf(out, "M%d %dl%d -4v8z", p->x, p->y, back);
}

/* --- JSON --- */

static json_t *path_json(const struct netdraw *d, size_t i,
			 void (*add)(const struct netdraw *, size_t, struct strbuf *))
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	add(d, i, &s);
	return json_string(strbuf_str(&s));
}

static json_t *node_json(const struct netdraw *d, size_t i)
{
	static const char *const kinds[] = {"container", "command", "address", "class"};
	const struct netmap_node *x = &d->map->nodes[d->nodes[i].node];
	const struct layers_box *b = &d->boxes[i];

	return json_pack("{s:o, s:s, s:o, s:s, s:i, s:i, s:i, s:i}", "name", json_text(x->name),
			 "kind", kinds[x->kind], "label", json_text(d->nodes[i].label), "said",
			 d->nodes[i].said, "x", b->x, "y", b->y, "w", b->w, "h", b->h);
}

static json_t *link_json(const struct netdraw *d, size_t i)
{
	const struct netdraw_link *l = &d->links[i];
	const struct layers_link *x = &d->places[i];
	json_t *lines = json_array();

	for (size_t k = 0; k < l->n_lines; k++)
		json_array_append_new(lines,
				      json_pack("{s:o, s:b}", "text", json_text(l->lines[k].text),
						"trouble", l->lines[k].trouble));
	return json_pack("{s:i, s:i, s:i, s:i, s:o, s:o, s:i, s:b, s:i, s:i, s:i, s:o, s:o}",
			 "from", (int)x->from, "to", (int)x->to, "first_row", (int)l->first_edge,
			 "rows", (int)l->n_edges, "path", path_json(d, i, netdraw_path), "head",
			 path_json(d, i, netdraw_head), "thick", l->thick, "trouble", l->trouble,
			 "x", x->x, "y", x->y, "w", x->w, "lines", lines, "title",
			 json_text(l->title));
}

json_t *netdraw_json(const struct netdraw *d)
{
	json_t *nodes = json_array(), *links = json_array();

	for (size_t i = 0; i < d->n_nodes; i++)
		json_array_append_new(nodes, node_json(d, i));
	for (size_t i = 0; i < d->n_links; i++)
		json_array_append_new(links, link_json(d, i));
	return json_pack("{s:i, s:i, s:i, s:o, s:o}", "width", d->size.w, "height", d->size.h,
			 "left_out", (int)d->left_out, "nodes", nodes, "links", links);
}
