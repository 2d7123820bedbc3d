/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/map_page.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/base/units.h"
#include "tools/net/netdraw.h"
#include "tools/net/netprint.h"
#include "tools/page/hash.h"
#include "tools/page/page_blob.h"
#include "tools/page/page_fill.h"
#include "tools/page/svg.h"
#include "tools/print/term.h"

#define MARGIN 12
#define HEAD   44 /* only for a picture without a page: its title and range */

/* --- the picture --- */

static void add_box(const struct netdraw *d, size_t i, struct strbuf *s)
{
	static const char *const kinds[] = {"container", "command", "address", "class"};
	const struct netmap_node *x = &d->map->nodes[d->nodes[i].node];
	const struct layers_box *b = &d->boxes[i];
	bool outside = x->kind == NETMAP_ADDRESS || x->kind == NETMAP_CLASS;

	strbuf_addf(s, "<g class=\"box %s\"><title>", kinds[x->kind]);
	page_add_text(s, x->name);
	strbuf_addf(
		s,
		", %s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" stroke=\"#5a6066\"%s/>",
		d->nodes[i].said, b->x, b->y, b->w, b->h,
		outside                     ? 17 :
		x->kind == NETMAP_CONTAINER ? 5 :
					      0,
		x->kind == NETMAP_CONTAINER ? "#dcebfb" : "#ffffff",
		outside ? " stroke-dasharray=\"4 3\"" : "");
	strbuf_addf(
		s,
		"<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-weight=\"bold\">",
		b->x + b->w / 2, b->y + b->h / 2 - 2);
	page_add_text(s, d->nodes[i].label);
	strbuf_addf(
		s,
		"</text><text class=\"said\" x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#5a6066\">%s</text></g>\n",
		b->x + b->w / 2, b->y + b->h / 2 + 12, d->nodes[i].said);
}

static void add_link(const struct netdraw *d, size_t i, struct strbuf *s)
{
	const struct netdraw_link *l = &d->links[i];
	const struct layers_link *x = &d->places[i];
	const char *colour = l->trouble ? "#b3261e" : "#5a6066";

	strbuf_addf(s, "<g class=\"link%s\"><title>", l->trouble ? " trouble" : "");
	page_add_text(s, l->title);
	strbuf_addstr(s, "</title><path class=\"way\" fill=\"none\" d=\"");
	netdraw_path(d, i, s);
	strbuf_addf(s, "\" stroke=\"%s\" stroke-width=\"%d\"%s/><path class=\"head\" d=\"", colour,
		    l->thick, l->trouble ? " stroke-dasharray=\"6 4\"" : "");
	netdraw_head(d, i, s);
	strbuf_addf(s, "\" fill=\"%s\"/>", colour);
	for (size_t k = 0; k < l->n_lines; k++) {
		strbuf_addf(s, "<text%s x=\"%d\" y=\"%d\"%s>",
			    l->lines[k].trouble ? " class=\"bad\"" : "", x->x + 5,
			    x->y + (int)k * NETDRAW_ROW + 10,
			    l->lines[k].trouble ? " fill=\"#b3261e\"" : "");
		page_add_text(s, l->lines[k].text);
		strbuf_addstr(s, "</text>");
	}
	strbuf_addstr(s, "</g>\n");
}

static void add_picture(const struct netdraw *d, struct strbuf *s)
{
	for (size_t i = 0; i < d->n_links; i++)
		add_link(d, i, s);
	for (size_t i = 0; i < d->n_nodes; i++)
		add_box(d, i, s);
}

static void add_left_out(const struct netdraw *d, struct strbuf *s)
{
	if (d->left_out)
		strbuf_addf(
			s,
			"only %zu of %zu lines are drawn: those with the most bytes and connections",
			d->n_links, d->n_links + d->left_out);
}

void map_page_svg(const struct netmap *m, const char *title, const char *range, FILE *out)
{
	struct strbuf head cleanup_strbuf = STRBUF_INIT, body cleanup_strbuf = STRBUF_INIT,
			   under cleanup_strbuf = STRBUF_INIT;
	struct netdraw d;
	int width;

	netdraw_make(m, &d);
	width = d.size.w + 2 * MARGIN < SVG_WIDTH_MIN ? SVG_WIDTH_MIN : d.size.w + 2 * MARGIN;
	strbuf_addstr(&under, range);
	if (d.left_out)
		strbuf_addstr(&under, "; ");
	add_left_out(&d, &under);
	svg_text(&head, MARGIN, 20, 14, title);
	svg_text(&head, MARGIN, 36, 0, strbuf_str(&under));
	strbuf_addf(&body, "<g transform=\"translate(%d %d)\">\n", MARGIN, HEAD + MARGIN);
	add_picture(&d, &body);
	strbuf_addstr(&body, "</g>\n");
	svg_write((unsigned)width, (unsigned)(d.size.h + HEAD + 2 * MARGIN), &head, &body, out);
	netdraw_release(&d);
}

/* --- the table --- */

static void add_count(struct strbuf *s, uint64_t n, const char *(*say)(uint64_t, char *, size_t))
{
	char buf[32];

	strbuf_addf(s, "<td class=\"num\">%s</td>", n ? say(n, buf, sizeof(buf)) : "");
}

static void add_p95(struct strbuf *s, const struct netmap_edge *x)
{
	char buf[24];

	strbuf_addf(s, "<td class=\"num\">%s</td>",
		    x->asked.answered ?
			    units_ns(reqrows_quantile(&x->asked, 0.95), buf, sizeof(buf)) :
			    "");
}

static void edge_row(const struct netmap *m, const struct netmap_edge *x, struct strbuf *s)
{
	struct strbuf trouble cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(s, "<tr><td class=\"fn\">");
	page_add_text(s, m->nodes[x->from].name);
	strbuf_addstr(s, "</td><td class=\"fn\">");
	page_add_text(s, m->nodes[x->to].name);
	strbuf_addstr(s, "</td><td>");
	page_add_text(s, x->protocol);
	if (x->port)
		strbuf_addf(s, " %lld", (long long)x->port);
	strbuf_addstr(s, "</td>");
	add_count(s, x->sums[NET_OPENED], units_count);
	add_count(s, x->open_now > 0 ? (uint64_t)x->open_now : 0, units_count);
	add_count(s, x->sums[NET_TX], units_bytes);
	add_count(s, x->sums[NET_RX], units_bytes);
	add_count(s, x->asked.requests, units_count);
	add_p95(s, x);
	netprint_edge_troubles(&trouble, x);
	strbuf_addstr(s, "<td>");
	page_add_text(s, strbuf_str(&trouble));
	strbuf_addstr(s, "</td></tr>\n");
}

static void add_table(const struct netmap *m, struct strbuf *s)
{
	struct strbuf unplaced cleanup_strbuf = STRBUF_INIT;
	static const char *const titles[][2] = {
		{"", "From"},    {"", "To"},     {"", "Service"}, {"num", "Opened"},
		{"num", "Open"}, {"num", "Out"}, {"num", "In"},   {"num", "Requests"},
		{"num", "p95"},  {"", "Trouble"}};

	strbuf_addstr(
		s,
		"<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"The map as a table\"><table id=\"map-rows\"><thead><tr>");
	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		strbuf_addf(s, "<th scope=\"col\" class=\"%s\">%s</th>", titles[i][0],
			    titles[i][1]);
	strbuf_addstr(s, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < m->n_edges; i++)
		edge_row(m, &m->edges[i], s);
	strbuf_addstr(s, "</tbody></table></div>\n");
	netprint_unplaced(&unplaced, m);
	if (unplaced.len)
		strbuf_addf(s, "<p class=\"half\">%s</p>\n", strbuf_str(&unplaced));
}

/* --- within a page --- */

static void add_drawing(const struct netmap *m, struct strbuf *s)
{
	struct netdraw d;

	netdraw_make(m, &d);
	if (d.left_out) {
		strbuf_addstr(s, "<p class=\"half\">");
		add_left_out(&d, s);
		strbuf_addstr(s, "; the table has all of them.</p>");
	}
	strbuf_addf(
		s,
		"<div class=\"map\" tabindex=\"0\" role=\"group\" aria-label=\"The map of services; wide ones scroll\"><svg width=\"%d\" height=\"%d\" viewBox=\"-4 -4 %d %d\" role=\"img\" aria-label=\"Map of services: %zu services, %zu lines; the table shows the same.\">\n",
		d.size.w + 8, d.size.h + 8, d.size.w + 8, d.size.h + 8, d.n_nodes, d.n_links);
	add_picture(&d, s);
	strbuf_addstr(s, "</svg></div>\n");
	netdraw_release(&d);
}

void map_page_section(const struct netmap *m, struct strbuf *s)
{
	if (!m->n_edges)
		return;
	strbuf_addstr(s, "<section id=\"map\" aria-label=\"Who talks to whom\">\n"
			 "<h2>Who talks to whom</h2>\n");
	add_drawing(m, s);
	strbuf_addf(s, "<details><summary>As a table: %zu</summary>", m->n_edges);
	add_table(m, s);
	strbuf_addstr(s, "</details></section>\n");
}

void map_page_html(const struct netmap *m, const char *title, const char *range, FILE *out)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(
		&s,
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
		"content=\"default-src 'none'; style-src 'sha256-" PAGE_STYLE_HASH
		"'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" content=\"sonde\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
	page_add_text(&s, title);
	strbuf_addstr(&s, "</title>\n<style>");
	strbuf_add(&s, page_css_begin, (size_t)(page_css_end - page_css_begin));
	strbuf_addstr(&s, "</style>\n</head>\n<body>\n<header><h1>");
	page_add_text(&s, title);
	strbuf_addstr(&s, "</h1><p class=\"half\">");
	page_add_text(&s, range);
	strbuf_addstr(&s, "</p></header>\n<main>\n");
	add_drawing(m, &s);
	strbuf_addstr(&s, "<h2>As a table</h2>\n");
	add_table(m, &s);
	strbuf_addstr(&s, "</main>\n</body>\n</html>\n");
	fwrite(s.buf, 1, s.len, out);
}
