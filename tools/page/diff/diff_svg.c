/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/diff/diff_svg.h"

#include <math.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_words.h"
#include "tools/fold/fold_kind.h"
#include "tools/page/page_fill.h"
#include "tools/page/svg.h"

#define TOP    62
#define NARROW 0.2
#define STEPS  4 /* steps of colour, on each side of "the same" */

static const char *const COLOURS[2 * STEPS + 1] = {
	"#53a6f7", "#78bafc", "#9fccfb", "#c1defe", "#e8e8e8",
	"#f9d2b4", "#f8b884", "#f09f58", "#e88519",
};
static const char *const PALE[2] = {"#dee9f5", "#f2e5db"};

struct picture {
	const struct diff_view *v;
	const struct diff *d;
	uint32_t *first, *next; /* children of each node, widest first; 0: none */
	double scale;           /* points for the whole of a side */
	size_t left_out;
	struct strbuf body;
};

/* The drawn amount of a node: its value after; for what is gone, its value before. */
static double width_of(const struct picture *p, uint32_t node, int side)
{
	const struct diff_side *s = &p->d->side[side];

	return s->whole > 0 ? (double)p->d->nodes[node].total_ns[side] / s->whole * p->scale : 0;
}

struct ranked {
	uint32_t node, parent;
	double width;
};

static int widest_last(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->width != y->width)
		return x->width < y->width ? -1 : 1;
	return x->node > y->node ? -1 : x->node < y->node;
}

/* Inserted one after the other, so that the widest ends up first. */
static void order(struct picture *p, int side)
{
	size_t n = p->d->n_nodes;
	cleanup_free struct ranked *list = mem_array(n + 1, sizeof(*list));

	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct ranked){i, p->d->nodes[i].parent, width_of(p, i, side)};
	qsort(list, n, sizeof(*list), widest_last);
	for (size_t i = 0; i < n; i++)
		p->first[i] = p->next[i] = 0;
	for (size_t i = 0; i < n; i++)
		if (list[i].node) {
			p->next[list[i].node] = p->first[list[i].parent];
			p->first[list[i].parent] = list[i].node;
		}
}

/* As in the page: within 2 %, to a tenth, to half as much again, above, and new or gone. */
static int step_of(double a, double b)
{
	double times;
	int step;

	if (!(a > 0) || !(b > 0))
		return a > 0 ? -STEPS : b > 0 ? STEPS : 0;
	times = fmax(a / b, b / a);
	step = times < 1.02 ? 0 : times < 1.1 ? 1 : times < 1.5 ? 2 : 3;
	return b < a ? -step : step;
}

static void add_title(const struct picture *p, const struct diff_value *x,
		      const struct diff_function *f, bool sure, struct strbuf *s)
{
	struct strbuf part cleanup_strbuf = STRBUF_INIT;

	page_add_text(s, f->frame->name);
	if (f->frame->module[0]) {
		strbuf_addstr(s, ", ");
		page_add_text(s, f->frame->module);
	}
	if (diff_in_shares(p->d)) {
		strbuf_addf(&part, ": %.2f %% to %.2f %% of all, ", 100 * x->v[0], 100 * x->v[1]);
	} else {
		strbuf_addstr(&part, ": ");
		diff_add_amount(&part, p->d, x->v[0]);
		strbuf_addstr(&part, " to ");
		diff_add_amount(&part, p->d, x->v[1]);
		strbuf_addstr(&part, ", ");
	}
	diff_add_percent(&part, x);
	strbuf_addstr(&part, sure ? "; more than noise" :
				    "; the change of the function is within the noise");
	page_add_text(s, strbuf_str(&part));
}

static void frame_add(struct picture *p, uint32_t node, double x, double width, unsigned y)
{
	const struct diff_node *n = &p->d->nodes[node];
	const struct diff_function *f = &p->d->functions[n->function];
	struct strbuf title cleanup_strbuf = STRBUF_INIT, label cleanup_strbuf = STRBUF_INIT;
	struct diff_value v = {.ns = {n->total_ns[0], n->total_ns[1]},
			       .samples = {n->total_samples[0], n->total_samples[1]}};
	bool sure = f->self.significant || f->total.significant;
	int step;

	for (int i = 0; i < 2; i++)
		v.v[i] = p->d->side[i].whole > 0 ? (double)n->total_ns[i] / p->d->side[i].whole : 0;
	step = step_of(v.v[0], v.v[1]);
	if (sure && step) {
		strbuf_addstr(&label, step < 0 ? "\u25bc " : "\u25b2 ");
		diff_add_percent(&label, &v);
		strbuf_addch(&label, ' ');
	}
	strbuf_addstr(&label, f->frame->name);
	add_title(p, &v, f, sure, &title);
	svg_frame(&p->body, x, y, width, sure || !step ? COLOURS[step + STEPS] : PALE[step > 0],
		  strbuf_str(&title), strbuf_str(&label));
}

/* Draws a node and everything below it: frames that exist after (side 1), or those that are gone.
 * Returns the lower edge of the deepest row. */
static unsigned draw(struct picture *p, uint32_t node, int side, double x, unsigned y)
{
	double width = width_of(p, node, side);
	unsigned lowest = y + SVG_ROW;

	if (width < NARROW) {
		p->left_out += width > 0;
		return y;
	}
	frame_add(p, node, x, width, y);
	for (uint32_t c = p->first[node]; c; c = p->next[c]) {
		unsigned low = draw(p, c, side, x, y + SVG_ROW);

		lowest = low > lowest ? low : lowest;
		x += width_of(p, c, side);
	}
	return lowest;
}

/* The topmost frames that are gone, side by side. */
static unsigned draw_gone(struct picture *p, unsigned y)
{
	const struct diff_node *nodes = p->d->nodes;
	unsigned lowest = y;
	double x = 0;

	for (uint32_t i = 1; i < p->d->n_nodes; i++) {
		unsigned low;

		if (nodes[i].total_ns[1] || !nodes[i].total_ns[0] ||
		    !nodes[nodes[i].parent].total_ns[1])
			continue;
		low = draw(p, i, 0, x, y + SVG_ROW);
		lowest = low > lowest ? low : lowest;
		x += width_of(p, i, 0);
	}
	return lowest;
}

static void head_add(const struct picture *p, struct strbuf *s)
{
	const struct diff *d = p->d;
	const struct fold *f = d->side[1].f;
	const struct diff_value *all = &d->functions[0].total;
	struct strbuf part cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&part, "What changed: %s%s%s", fold_is_cores(f) ? "CPU time" : f->kind->what,
		    f->host && *f->host ? " on " : "", f->host ? f->host : "");
	svg_text(s, 3, 16, 14, strbuf_str(&part));
	strbuf_reset(&part);
	strbuf_addf(&part, "before: %s;  after: %s", p->v->sides->label[0], p->v->sides->label[1]);
	svg_text(s, 3, 34, 0, strbuf_str(&part));
	strbuf_reset(&part);
	if (!diff_in_shares(d)) {
		diff_add_amount(&part, d, all->v[0]);
		strbuf_addstr(&part, " to ");
		diff_add_amount(&part, d, all->v[1]);
		strbuf_addstr(&part, "; ");
	}
	strbuf_addf(
		&part,
		"%zu of %zu functions changed by more than noise; blue: less, orange: more, pale: within the noise",
		d->n_significant, d->n_tested);
	if (p->left_out)
		strbuf_addf(&part, "; %zu frames are too narrow to be drawn", p->left_out);
	svg_text(s, 3, 52, 0, strbuf_str(&part));
}

void diff_svg_write(const struct diff_view *v, unsigned width, FILE *out)
{
	struct picture p = {.v = v, .d = v->d, .scale = 1};
	struct strbuf head cleanup_strbuf = STRBUF_INIT;
	unsigned height, gone;
	double widest;

	p.first = mem_array(p.d->n_nodes + 1, sizeof(*p.first));
	p.next = mem_array(p.d->n_nodes + 1, sizeof(*p.next));
	widest = fmax(width_of(&p, 0, 0), width_of(&p, 0, 1));
	p.scale = widest > 0 ? width / widest : 0;
	order(&p, 1);
	height = draw(&p, 0, 1, 0, TOP);
	order(&p, 0);
	gone = draw_gone(&p, height + SVG_ROW);
	if (gone > height + SVG_ROW)
		svg_text(&p.body, 3, height + SVG_ROW + 13, 0,
			 "gone: what is missing now, as wide as it was before");
	head_add(&p, &head);
	svg_write(width, (gone > height + SVG_ROW ? gone : height) + 4, &head, &p.body, out);
	strbuf_release(&p.body);
	free(p.first);
	free(p.next);
}
