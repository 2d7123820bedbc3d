/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/flame_html.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/worker.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/ranking/top.h"
#include "tools/fold/shortfall.h"
#include "tools/page/flame_pack.h"
#include "tools/page/page_fill.h"
#include "tools/print/term.h"
#include "tools/print/when.h"

#define UNNAMED_FILES 3

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_percent(struct strbuf *s, uint64_t part, uint64_t whole)
{
	double p = percent(part, whole);

	strbuf_addf(s, p >= 10 ? "%.1f %%" : "%.2f %%", p);
}

void flame_html_title(const struct flame_page *p, struct strbuf *s)
{
	const struct fold *f = p->folds[0];
	const char *what = p->title ? p->title : fold_is_cores(f) ? "CPU time" : f->kind->what;

	strbuf_addf(s, "%c%s of ", *what >= 'a' && *what <= 'z' ? *what - 'a' + 'A' : *what,
		    what + 1);
	page_add_text(s, *p->what ? p->what : f->host && *f->host ? f->host : "this host");
	if (*p->what && f->host && *f->host) {
		strbuf_addstr(s, " on ");
		page_add_text(s, f->host);
	}
}

static uint64_t lost_of(const struct fold *f)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < f->n_losses; i++)
		lost += f->losses[i].n;
	return lost;
}

/* The most important facts, in one line. */
static void brief_make(const struct flame_page *p, struct strbuf *s)
{
	const struct fold *f = p->folds[0];
	const struct fold_node *all = &f->nodes[0];
	char n[32], length[32];

	strbuf_addstr(s, "<b>");
	page_add_text(s, *p->range ? p->range :
				     units_ns(f->to_ns - f->from_ns, length, sizeof(length)));
	strbuf_addstr(s, "</b> · ");
	if (fold_is_cores(f))
		strbuf_addf(s, "%.2f of %u cores · ", fold_cores(f, all->total_ns), f->cpus);
	else if (!fold_is_count(f))
		strbuf_addf(s, "%s · ", fold_amount(f, all->total_ns, n, sizeof(n)));
	strbuf_addf(s, "%s %s", units_count(all->total_samples, n, sizeof(n)),
		    store_kind_counted(f->kind));
	if (lost_of(f))
		strbuf_addf(s, " · <b>%s lost</b>", units_count(lost_of(f), n, sizeof(n)));
	if (f->n_shed)
		strbuf_addstr(s, " · <b>sonded recorded less then</b>");
	if (*p->filters) {
		strbuf_addstr(s, " · only ");
		page_add_text(s, p->filters);
	}
}

static void fact_time(const struct flame_page *p, struct strbuf *s)
{
	const struct fold *f = p->folds[0];
	char from[32], to[32], length[32];

	strbuf_addstr(s, "<li><b>");
	page_add_text(s, *p->range ? p->range :
				     units_ns(f->to_ns - f->from_ns, length, sizeof(length)));
	strbuf_addf(s, "</b>; %s to %s</li>\n", when_utc(f->from_ns, from, sizeof(from)),
		    when_utc(f->to_ns, to, sizeof(to)));
}

static void fact_load(const struct flame_page *p, struct strbuf *s)
{
	const struct fold *f = p->folds[0];
	const struct fold_node *all = &f->nodes[0];
	char n[32];

	if (!fold_is_cores(f)) {
		strbuf_addstr(s, "<li><b>");
		fold_say(s, f, all->total_ns, all->total_samples);
		strbuf_addstr(s, "</b></li>\n");
		return;
	}
	strbuf_addf(s, "<li><b>%.2f cores</b> of %u busy", fold_cores(f, all->total_ns), f->cpus);
	strbuf_addf(s, ", %.2f s of CPU time</li>\n", (double)all->total_ns / 1e9);
	strbuf_addf(s, "<li><b>%s samples</b>", units_count(all->total_samples, n, sizeof(n)));
	if (f->period_ns)
		strbuf_addf(s, " at %.4g Hz", 1e9 / (double)f->period_ns);
	strbuf_addstr(s, "</li>\n");
}

struct unnamed {
	const char *module;
	bool in_file; /* whose symbols could be had */
	uint64_t ns;
};

static int by_amount(const void *a, const void *b)
{
	const struct unnamed *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->module, y->module);
}

/* Self time in functions without a name, by file; returns the number of files. */
static size_t unnamed_files(const struct fold *f, struct unnamed **out)
{
	struct unnamed *v = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 1; i < f->n_nodes; i++) {
		const struct fold_frame *fr = &f->frames[f->nodes[i].frame];
		size_t k = 0;

		if (fr->named || !f->nodes[i].self_ns || !*fr->module || fr->origin == FOLD_OFF)
			continue;
		while (k < n && strcmp(v[k].module, fr->module))
			k++;
		if (k == n) {
			mem_grow(v, n, cap);
			v[n++] = (struct unnamed){fr->module, fold_frame_in_file(fr), 0};
		}
		v[k].ns += f->nodes[i].self_ns;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_amount);
	*out = v;
	return n;
}

/* How to get names. */
static void add_fix(struct strbuf *s, const struct unnamed *v, size_t n, bool only)
{
	size_t files = 0;

	for (size_t i = 0; i < n; i++)
		files += v[i].in_file;
	if (!files)
		return;
	strbuf_addstr(
		s,
		files == 1 && only ?
			" the file has no symbols; install its debug package, then run sonde symbolize" :
		files == n ?
			": these files have no symbols; install their debug packages, then run sonde symbolize" :
			": for those that are files, install their debug packages, then run sonde symbolize");
}

/* How much has no name, in which files, and how to get names. */
static void fact_unnamed(const struct fold *f, struct strbuf *s)
{
	cleanup_free struct unnamed *v = NULL;
	uint64_t all = f->nodes[0].total_ns;
	size_t n;

	if (!f->frames_unnamed_ns) {
		strbuf_addstr(s, "<li>every function has a name</li>\n");
		return;
	}
	strbuf_addstr(s, "<li>");
	add_percent(s, f->frames_unnamed_ns, all);
	strbuf_addstr(s, " is in functions without a name");
	n = unnamed_files(f, &v);
	for (size_t i = 0; i < n && i < UNNAMED_FILES; i++) {
		bool only = v[i].ns == f->frames_unnamed_ns;

		strbuf_addstr(s, only              ? ", all of it in " :
				 i                 ? ", " :
				 n > UNNAMED_FILES ? ", most of it in " :
						     ", in ");
		page_add_text(s, v[i].module);
		strbuf_addstr(s, only ? v[i].in_file ? ":" : "" : " ");
		if (!only)
			add_percent(s, v[i].ns, all);
	}
	add_fix(s, v, n, n == 1 && v[0].ns == f->frames_unnamed_ns);
	strbuf_addstr(s, "</li>\n");
}

static void shed_add(void *ctx, const char *sentence)
{
	struct strbuf *s = ctx;

	strbuf_addstr(s, "<li class=\"warn\">");
	page_add_text(s, sentence);
	strbuf_addstr(s, "</li>\n");
}

static void fact_unseen(const struct flame_page *p, struct strbuf *s)
{
	const struct fold *f = p->folds[0];
	uint64_t lost = lost_of(f);
	char n[32];

	strbuf_addf(s, "<li%s>%s lost", lost ? " class=\"warn\"" : "",
		    units_count(lost, n, sizeof(n)));
	for (size_t i = 0; lost && i < f->n_losses; i++) {
		const struct fold_loss *l = &f->losses[i];
		const char *words = shortfall_reason(l->reason);
		char from[32], to[32];

		strbuf_addstr(s, i ? ", " : " (");
		page_add_text(s, l->reason);
		strbuf_addf(s, " %s", units_count(l->n, n, sizeof(n)));
		if (*words)
			strbuf_addf(s, ": %s", words);
		if (l->from_ns)
			strbuf_addf(s, ", %s to %s", when_utc(l->from_ns, from, sizeof(from)),
				    when_utc(l->to_ns, to, sizeof(to)));
	}
	strbuf_addstr(s, lost ? ")</li>\n" : "</li>\n");
	shortfall_shed(f, shed_add, s);
	fact_unnamed(f, s);
	if (f->own.cpu_ns + f->own.edges_ns && fold_is_cores(f))
		strbuf_addf(
			s,
			"<li>sonde itself used %.2f %% of one core, and %.2f s to start and end (its processes are %s)</li>\n",
			100 * fold_cores(f, f->own.cpu_ns), (double)f->own.edges_ns / 1e9,
			p->self ? "shown here" : "left out");
}

static void fact_cut_short(const struct flame_page *p, struct strbuf *s)
{
	const struct endings *x = &p->folds[0]->endings;
	cleanup_strbuf struct strbuf worst = STRBUF_INIT;

	if (!x->n)
		return;
	strbuf_addf(s, "<li>%.1f %% of user stacks complete%s", 100 * endings_share(x),
		    *p->filters ? " (all processes)" : "");
	if (x->programs[0].cut) {
		endings_say(x, 0, &worst);
		strbuf_addstr(s, "; most incomplete ones are in ");
		page_add_text(s, strbuf_str(&worst));
	}
	strbuf_addstr(s, "</li>\n");
}

static void facts_make(const struct flame_page *p, const struct flame_tree *t, struct strbuf *s)
{
	char n[32];

	fact_time(p, s);
	fact_load(p, s);
	fact_unseen(p, s);
	fact_cut_short(p, s);
	if (*p->filters) {
		strbuf_addstr(s, "<li>only <b>");
		page_add_text(s, p->filters);
		strbuf_addstr(s, "</b></li>\n");
	}
	if (t->elided)
		strbuf_addf(s,
			    "<li>the %s smallest frames are drawn as \"(smaller frames)\"</li>\n",
			    units_count(t->elided, n, sizeof(n)));
	if (p->folds[0]->kernel && *p->folds[0]->kernel) {
		strbuf_addstr(s, "<li>kernel ");
		page_add_text(s, p->folds[0]->kernel);
		strbuf_addstr(s, "</li>\n");
	}
}

/* cores, or the amount in its unit */
static void add_amount(struct strbuf *s, const struct fold *f, uint64_t amount)
{
	char text[32];

	if (fold_is_cores(f))
		strbuf_addf(s, "%.2f", fold_cores(f, amount));
	else
		strbuf_addstr(s, fold_amount(f, amount, text, sizeof(text)));
}

/* The table's head; the script makes its cells buttons that sort. */
static void columns_make(const struct fold *f, struct strbuf *s)
{
	const char *unit = fold_is_cores(f) ? "cores" : "amount";

	page_add_column(s, "num", "self", "Self");
	page_add_column(s, "num cores rate", NULL, unit);
	page_add_column(s, "num", "total", "Total");
	page_add_column(s, "num cores rate", NULL, unit);
	page_add_column(s, "fn", "name", "Function");
	page_add_column(s, "mod", "module", "Module");
}

static void rows_make(const struct fold *f, struct flame_tree *t, struct strbuf *s)
{
	uint64_t whole = f->nodes[0].total_ns;
	struct top top;

	top_init(&top, t);
	for (size_t i = 0; i < top.n_rows && i < PAGE_TABLE_ROWS; i++) {
		const struct top_row *r = &top.rows[i];

		strbuf_addstr(s, "<tr><td class=\"num\">");
		add_percent(s, r->self_ns, whole);
		strbuf_addstr(s, "</td><td class=\"num cores\">");
		add_amount(s, f, r->self_ns);
		strbuf_addstr(s, "</td><td class=\"num\">");
		add_percent(s, r->total_ns, whole);
		strbuf_addstr(s, "</td><td class=\"num cores\">");
		add_amount(s, f, r->total_ns);
		strbuf_addstr(s, "</td><td class=\"fn\">");
		page_add_text(s, t->frames[r->frame].name);
		strbuf_addstr(s, "</td><td class=\"mod\">");
		page_add_text(s, t->frames[r->frame].module);
		strbuf_addstr(s, "</td></tr>\n");
	}
	top_release(&top);
}

struct beginning {
	struct flame_rows *rows;
	const struct fold *f;
};

static void rows_begin(void *ctx)
{
	struct beginning *b = ctx;

	flame_rows_begin(b->rows, b->f);
}

/* This thread packs the tree, because it has just touched all nodes. */
void flame_view_init(struct flame_view *v, const struct fold *f)
{
	struct beginning b = {&v->rows, f};
	struct worker other;

	worker_start(&other, rows_begin, &b);
	flame_tree_init(&v->tree, f, FLAME_HTML_MAX_NODES, true);
	worker_join(&other);
	flame_rows_end(&v->rows, &v->tree, FLAME_HTML_MAX_ROWS);
}

void flame_view_release(struct flame_view *v)
{
	flame_tree_release(&v->tree);
	flame_rows_release(&v->rows);
}

static int data_make(const struct flame_page *p, const struct flame_view *views,
		     struct strbuf *data)
{
	static const char *const label[] = {""};
	struct flame_pack_head head = {*p->group ? p->group : "nested",
				       p->source_url ? p->source_url : ""};
	cleanup_free struct flame_pack_profile *profiles = mem_array(p->n_folds, sizeof(*profiles));

	for (size_t i = 0; i < p->n_folds; i++)
		profiles[i] = (struct flame_pack_profile){
			.f = p->folds[i],
			.t = &views[i].tree,
			.sides = &views[i].rows,
			.labels = label,
			.n_sides = 1,
		};
	return flame_pack(&head, profiles, p->n_folds, data);
}

struct packing {
	const struct flame_page *p;
	const struct flame_view *views;
	struct strbuf data;
	int ret;
};

static void pack(void *ctx)
{
	struct packing *k = ctx;

	k->ret = data_make(k->p, k->views, &k->data);
}

/* The readable parts are made while the data is packed. */
static int page_write(const struct flame_page *p, struct flame_view *views, FILE *out,
		      struct err *e)
{
	cleanup_strbuf struct strbuf title = STRBUF_INIT, brief = STRBUF_INIT, facts = STRBUF_INIT,
				     columns = STRBUF_INIT, rows = STRBUF_INIT;
	struct packing packing = {.p = p, .views = views, .data = STRBUF_INIT};
	struct worker other;

	worker_start(&other, pack, &packing);
	flame_html_title(p, &title);
	brief_make(p, &brief);
	facts_make(p, &views[0].tree, &facts);
	columns_make(p->folds[0], &columns);
	rows_make(p->folds[0], &views[0].tree, &rows);
	worker_join(&other);
	if (!packing.ret)
		page_fill(&(struct page_parts){.title = &title,
					       .brief = &brief,
					       .facts = &facts,
					       .columns = &columns,
					       .rows = &rows,
					       .data = &packing.data,
					       .report = p->report,
					       .report_below = p->report_below},
			  out);
	strbuf_release(&packing.data);
	return packing.ret ? err_set(e, packing.ret, EXIT_RUNTIME,
				     "cannot pack the flame graph: %s", strerror(-packing.ret)) :
			     0;
}

int flame_html_write(const struct flame_page *p, FILE *out, struct err *e)
{
	struct flame_view *own;
	int ret;

	if (p->views)
		return page_write(p, p->views, out, e);
	own = mem_array(p->n_folds, sizeof(*own));
	for (size_t i = 0; i < p->n_folds; i++)
		flame_view_init(&own[i], p->folds[i]);
	ret = page_write(p, own, out, e);
	for (size_t i = 0; i < p->n_folds; i++)
		flame_view_release(&own[i]);
	free(own);
	return ret;
}
