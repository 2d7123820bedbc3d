/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/flame_text.h"

#include <math.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/estimate.h"
#include "tools/print/term.h"

#define BAR           8 /* cells */
#define ERROR_COLUMNS 7 /* "±100 %" */

struct text {
	const struct fold *f;
	struct flame_tree t;
	uint32_t *end;    /* first node behind a node's subtree */
	uint32_t *indent; /* by node */
	bool *forked;     /* by node: its caller has several callees that are shown */
	FILE *out;
	unsigned width;
	bool unicode;
};

static void ends_make(struct text *x)
{
	for (size_t i = x->t.n_nodes; i-- > 0;) {
		uint32_t parent = x->t.nodes[i].parent;

		if (x->end[i] < i + 1)
			x->end[i] = (uint32_t)i + 1;
		if (i && x->end[parent] < x->end[i])
			x->end[parent] = x->end[i];
	}
}

static void indents_make(struct text *x)
{
	for (size_t i = 0; i < x->t.n_nodes; i++) {
		size_t first = i + 1;
		bool forks = first < x->end[i] && x->end[first] < x->end[i];

		for (size_t c = first; c < x->end[i]; c = x->end[c]) {
			x->forked[c] = forks;
			x->indent[c] = x->indent[i] + (i && x->forked[i]);
		}
	}
}

static void bar_add(struct strbuf *s, double share, bool unicode)
{
	static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
					      "\u258c", "\u258b", "\u258a", "\u2589"};
	int full = (int)(share * BAR * 8 + 0.5), cells = full / 8, used = cells;

	if (!unicode) {
		cells = used = (int)(share * BAR + 0.5);
		full = 0;
	}
	for (int i = 0; i < cells; i++)
		strbuf_addstr(s, unicode ? "\u2588" : "#");
	if (full % 8) {
		strbuf_addstr(s, eighths[full % 8]);
		used++;
	}
	strbuf_addf(s, "%*s", BAR - used, "");
}

static enum term_color color_of(const struct fold_frame *fr, bool hot)
{
	return hot                       ? TERM_BOLD :
	       fr->origin == FOLD_KERNEL ? TERM_YELLOW :
	       fr->origin == FOLD_GO     ? TERM_CYAN :
	       fr->origin == FOLD_JIT    ? TERM_GREEN :
	       fr->origin == FOLD_OFF    ? TERM_DIM :
					   TERM_PLAIN;
}

static void line_print(const struct text *x, size_t i, bool hot)
{
	const struct flame_node *n = &x->t.nodes[i];
	const struct fold_frame *fr = &x->t.frames[n->frame];
	double share =
		x->t.nodes[0].total_ns ? (double)n->total_ns / (double)x->t.nodes[0].total_ns : 0;
	cleanup_strbuf struct strbuf head = STRBUF_INIT, name = STRBUF_INIT, module = STRBUF_INIT;
	unsigned deep = 2 * x->indent[i];
	size_t used, room = SIZE_MAX;
	char amount[32], error[ESTIMATE_MAX];

	if (x->width && deep > x->width / 3) /* the name matters more */
		deep = x->width / 3;

	strbuf_addf(&head, "%5.1f%% %9s ", 100 * share,
		    fold_amount(x->f, n->total_ns, amount, sizeof(amount)));
	if (x->t.nodes[0].total_variance > 0) {
		estimate_text(n->total_ns, n->total_variance, error, sizeof(error));
		strbuf_addf(&head, "%*s%s ", ERROR_COLUMNS - (int)term_columns(error), "", error);
	}
	bar_add(&head, share, x->unicode);
	strbuf_addf(&head, " %c %*s%s", hot ? '>' : ' ', (int)deep, "",
		    !x->forked[i] ? "" :
		    x->unicode    ? "\u251c " :
				    "+ ");
	used = term_columns(strbuf_str(&head));
	if (x->width)
		room = x->width > used + 8 ? x->width - used : 8;
	term_add_middle(&name, fr->name, room);
	strbuf_addshown(&module, fr->module, strlen(fr->module));
	if (module.len &&
	    term_columns(strbuf_str(&name)) + term_columns(strbuf_str(&module)) + 3 <= room)
		strbuf_addf(&name, "  %s", strbuf_str(&module));
	fprintf(x->out, "%s%s%s%s\n", strbuf_str(&head), term_on(x->out, color_of(fr, hot)),
		strbuf_str(&name), term_off(x->out));
}

static void lines_print(const struct text *x)
{
	size_t hottest = 0; /* the next node of the hottest path */

	for (size_t i = 0; i < x->t.n_nodes; i++) {
		bool hot = i == hottest;

		if (hot)
			hottest = i + 1 < x->end[i] ? i + 1 : x->t.n_nodes;
		line_print(x, i, hot && i);
	}
	if (x->t.elided)
		fprintf(x->out, "%zu smaller frames are not shown (each below %.1f %%)\n",
			x->t.elided, 100 * FLAME_TEXT_SHARE);
}

void flame_text_write(const struct fold *f, FILE *out, unsigned width, bool unicode)
{
	struct text x = {.f = f, .out = out, .width = width, .unicode = unicode};
	char title[FOLD_TITLE_LEN];
	cleanup_free uint32_t *end = NULL, *indent = NULL;
	cleanup_free bool *forked = NULL;

	flame_tree_init_least(&x.t, f,
			      (uint64_t)ceil(FLAME_TEXT_SHARE * (double)f->nodes[0].total_ns));
	x.end = end = mem_array(x.t.n_nodes + 1, sizeof(*end));
	x.indent = indent = mem_array(x.t.n_nodes + 1, sizeof(*indent));
	x.forked = forked = mem_array(x.t.n_nodes + 1, sizeof(*forked));
	ends_make(&x);
	indents_make(&x);
	fprintf(out, "%s SHARE %9s %s%*s   FUNCTION%s\n", term_on(out, TERM_DIM),
		fold_amount_title(f, title, sizeof(title)),
		x.t.nodes[0].total_variance > 0 ? "  ERROR " : "", BAR, "", term_off(out));
	lines_print(&x);
	flame_tree_release(&x.t);
}
