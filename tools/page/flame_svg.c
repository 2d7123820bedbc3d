/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/flame_svg.h"

#include <math.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold_kind.h"
#include "tools/page/page_fill.h"
#include "tools/page/svg.h"
#include "tools/print/term.h"
#include "tools/print/when.h"

#define TOP    44
#define NARROW 0.2

struct svg {
	const struct fold *f;
	struct flame_tree t;
	double *x;    /* by node: its left edge, in points */
	double scale; /* points per amount */
	size_t left_out;
	struct strbuf body;
};

/* From hue (degrees), saturation and lightness to "#rrggbb". */
static void colour_of(const struct fold_frame *fr, char out[8])
{
	static const struct {
		double from, to, saturation;
	} hues[] = {
		[FOLD_NATIVE] = {205, 275, 0.75}, [FOLD_KERNEL] = {20, 45, 0.9},
		[FOLD_GO] = {150, 185, 0.55},     [FOLD_JIT] = {310, 345, 0.7},
		[FOLD_GROUP] = {220, 220, 0.1},   [FOLD_UNKNOWN] = {0, 0, 0},
		[FOLD_OFF] = {95, 125, 0.45},     [FOLD_SCRIPT] = {275, 310, 0.7},
	};
	uint64_t h = hash_str(HASH_SEED, *fr->module ? fr->module : fr->name);
	double hue = hues[fr->origin].from +
		     (hues[fr->origin].to - hues[fr->origin].from) * (double)(h % 997) / 996;
	double light = 0.78 + (double)(h >> 20 & 7) / 100,
	       a = hues[fr->origin].saturation * fmin(light, 1 - light);
	unsigned rgb[3];

	for (int i = 0; i < 3; i++) {
		double k = fmod((double)"\0\x08\x04"[i] + hue / 30, 12);

		rgb[i] =
			(unsigned)lround(255 * (light - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1))));
	}
	snprintf(out, 8, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}

/* Callees are side by side from the left edge of their caller. */
static void places_make(struct svg *s, unsigned width)
{
	cleanup_free double *next = mem_array(s->t.n_nodes + 1, sizeof(*next));

	s->scale = s->t.nodes[0].total_ns ? width / (double)s->t.nodes[0].total_ns : 0;
	s->x = mem_array(s->t.n_nodes + 1, sizeof(*s->x));
	for (size_t i = 1; i < s->t.n_nodes; i++) {
		uint32_t parent = s->t.nodes[i].parent;

		s->x[i] = next[i] = next[parent];
		next[parent] += (double)s->t.nodes[i].total_ns * s->scale;
	}
}

static void frame_add(struct svg *s, size_t i)
{
	const struct flame_node *n = &s->t.nodes[i];
	const struct fold_frame *fr = &s->t.frames[n->frame];
	const double whole = (double)s->t.nodes[0].total_ns;
	cleanup_strbuf struct strbuf title = STRBUF_INIT;
	char colour[8];

	colour_of(fr, colour);
	page_add_text(&title, fr->name);
	strbuf_addstr(&title, *fr->module ? ", " : "");
	page_add_text(&title, fr->module);
	strbuf_addf(&title, ": %.2f %%, ", 100 * (double)n->total_ns / whole);
	fold_say(&title, s->f, n->total_ns, n->total_samples);
	strbuf_addf(&title, "; self %.2f %%", 100 * (double)n->self_ns / whole);
	svg_frame(&s->body, s->x[i], TOP + n->depth * SVG_ROW, (double)n->total_ns * s->scale,
		  colour, strbuf_str(&title), fr->name);
}

static unsigned frames_add(struct svg *s)
{
	uint32_t deepest = 0;

	for (size_t i = 0; i < s->t.n_nodes; i++) {
		if ((double)s->t.nodes[i].total_ns * s->scale < NARROW) {
			s->left_out++;
			continue;
		}
		frame_add(s, i);
		deepest = s->t.nodes[i].depth > deepest ? s->t.nodes[i].depth : deepest;
	}
	return deepest;
}

static void head_add(const struct flame_page *p, const struct svg *s, struct strbuf *out)
{
	char a[32], b[32];
	const struct fold *f = s->f;

	strbuf_addstr(out, "<text x=\"3\" y=\"16\" font-size=\"14\">");
	flame_html_title(p, out);
	strbuf_addstr(out, "</text>\n<text x=\"3\" y=\"34\">");
	page_add_text(out, p->range);
	strbuf_addf(out, "; %s to %s; ", when_utc(f->from_ns, a, sizeof(a)),
		    when_utc(f->to_ns, b, sizeof(b)));
	fold_say(out, f, f->nodes[0].total_ns, f->nodes[0].total_samples);
	if (*p->filters) {
		strbuf_addstr(out, "; only ");
		page_add_text(out, p->filters);
	}
	if (s->left_out)
		strbuf_addf(out, "; %zu frames are too narrow to be drawn", s->left_out);
	strbuf_addstr(out, "</text>\n");
}

void flame_svg_write(const struct flame_page *p, unsigned width, FILE *out)
{
	struct svg s = {.f = p->folds[0], .body = STRBUF_INIT};
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	unsigned height;

	flame_tree_init(&s.t, s.f, FLAME_HTML_MAX_NODES, false);
	places_make(&s, width);
	height = TOP + (frames_add(&s) + 1) * SVG_ROW + 4;
	head_add(p, &s, &head);
	svg_write(width, height, &head, &s.body, out);
	flame_tree_release(&s.t);
	strbuf_release(&s.body);
	free(s.x);
}
