/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: compares two profiles function by function, and tells changes from noise. */
#include <errno.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/units.h"
#include "tools/cli/verb.h"
#include "tools/diff/diff.h"
#include "tools/diff/diff_print.h"
#include "tools/diff/diff_sides.h"
#include "tools/fold/fold_kind.h"
#include "tools/formats/pprof.h"
#include "tools/page/diff/diff_html.h"
#include "tools/page/diff/diff_svg.h"
#include "tools/page/svg.h"
#include "tools/print/outfile.h"
#include "tools/print/term.h"

#define DEFAULT_ROWS 10
#define ALPHA        0.05

struct diff_args {
	const char *output, *before, *after, *per, *type, *source_url, *request, *slower;
	int64_t baseline_ns;
	uint64_t rows;
	uint64_t width;
	bool no_inline, interpreter, slow;
	struct select_args vs;
};

#define VS(field) offsetof(struct diff_args, vs) + offsetof(struct select_args, field)

static const struct option DIFF_OPTIONS[] = {
	FOLD_KIND_OPTION(struct diff_args, type),
	{"request", 0, OPTION_STRING, "OPERATION",
	 "compare only these requests; --slow: slow ones (--slower-than p95) with the rest",
	 offsetof(struct diff_args, request)},
	{"slower-than", 0, OPTION_STRING, "TIME", NULL, offsetof(struct diff_args, slower)},
	{"slow", 0, OPTION_FLAG, NULL, NULL, offsetof(struct diff_args, slow)},
	{"baseline", 0, OPTION_DURATION, "TIME", "compare with the same range, this much earlier",
	 offsetof(struct diff_args, baseline_ns)},
	{"before", 0, OPTION_STRING, "FILE",
	 "compare with a pprof or folded file, or a store; --after FILE: the later profile",
	 offsetof(struct diff_args, before)},
	{"after", 0, OPTION_STRING, "FILE", NULL, offsetof(struct diff_args, after)},
	{"per", 0, OPTION_STRING, "UNIT",
	 "second (cores) or sample (shares); default: second if both have times",
	 offsetof(struct diff_args, per)},
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 10; 0: all)",
	 offsetof(struct diff_args, rows)},
	{"output", 'o', OPTION_STRING, "FILE",
	 "x.html, .svg, .json (a tree), .folded (2 columns), .pb.gz (for -diff_base)",
	 offsetof(struct diff_args, output)},
	{"source-url", 0, OPTION_STRING, "URL",
	 "how the page links to source; {file} and {line} are filled in",
	 offsetof(struct diff_args, source_url)},
	{"width", 0, OPTION_UINT, "PIXELS", "width of an .svg (default 1200)",
	 offsetof(struct diff_args, width)},
	{"no-inline", 0, OPTION_FLAG, NULL,
	 "count inlined functions as their caller; --interpreter: keep interpreter frames",
	 offsetof(struct diff_args, no_inline)},
	{"interpreter", 0, OPTION_FLAG, NULL, NULL, offsetof(struct diff_args, interpreter)},
	{"vs-last", 0, OPTION_DURATION, "TIME", NULL, VS(last_ns)},
	{"vs-from", 0, OPTION_STRING, "T", NULL, VS(from)},
	{"vs-to", 0, OPTION_STRING, "T", NULL, VS(to)},
	{"vs-at", 0, OPTION_STRING, "T", NULL, VS(at)},
	{"vs-rec", 0, OPTION_STRING, "ID", NULL, VS(rec)},
	{"vs-container", 0, OPTION_LIST, "NAME", NULL, VS(container)},
	{"vs-image", 0, OPTION_LIST, "NAME", NULL, VS(image)},
	{"vs-pid", 0, OPTION_LIST, "PID", NULL, VS(pid)},
	{"vs-tid", 0, OPTION_LIST, "TID", NULL, VS(tid)},
	{"vs-comm", 0, OPTION_LIST, "NAME", NULL, VS(comm)},
	{"vs-exe", 0, OPTION_LIST, "PATH", NULL, VS(exe)},
	{"vs-user", 0, OPTION_LIST, "NAME", NULL, VS(user)},
	{"vs-unit", 0, OPTION_LIST, "NAME", NULL, VS(unit)},
	{"vs-cgroup", 0, OPTION_LIST, "PATH", NULL, VS(cgroup)},
	{"vs-lang", 0, OPTION_LIST, "NAME", NULL, VS(lang)},
	{"vs-label", 0, OPTION_LIST, "KEY=VALUE", NULL, VS(label)},
	{"vs-host", 0, OPTION_LIST, "NAME", NULL, VS(host)},
	{0},
};

static const char *const DIFF_EXAMPLES[] = {
	"sonde diff web --last 10m --baseline 1h -o changed.html",
	"sonde diff --request 'GET /checkout' --slow --type offcpu",
	NULL,
};

enum form { FORM_TEXT, FORM_JSON, FORM_HTML, FORM_TREE, FORM_FOLDED, FORM_PPROF, FORM_SVG };

static int form_of(const struct verb_call *call, enum form *form, struct err *e)
{
	static const struct {
		const char *end;
		enum form form;
	} forms[] = {
		{".html", FORM_HTML},   {".htm", FORM_HTML},      {".svg", FORM_SVG},
		{".json", FORM_TREE},   {".folded", FORM_FOLDED}, {".collapsed", FORM_FOLDED},
		{".pb.gz", FORM_PPROF}, {".pprof", FORM_PPROF},
	};
	const struct diff_args *a = call->args;

	*form = call->json ? FORM_JSON : FORM_TEXT;
	if (!a->output)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (outfile_ends_with(a->output, forms[i].end)) {
			*form = forms[i].form;
			return 0;
		}
	err_set(e, -EINVAL, EXIT_USAGE,
		"cannot tell the format from the name '%.200s' (known: .html, .svg, .json, .folded and .pb.gz)",
		a->output);
	err_fix(e, "sonde diff -o x.html");
	return -EINVAL;
}

/* The --per option; by default per second if both sides have times. */
static int per_of(const char *text, const struct diff_sides *s, enum diff_per *per, struct err *e)
{
	bool times = true;

	for (int i = 0; i < 2; i++)
		times = times && (s->fold[i]->to_ns > s->fold[i]->from_ns ||
				  s->fold[i]->kind->class == STORE_GAUGE);
	*per = times ? DIFF_PER_SECOND : DIFF_PER_SAMPLE;
	if (!text)
		return 0;
	if (strcmp(text, "second") && strcmp(text, "sample"))
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--per must be second or sample, not '%.100s'", text);
	*per = !strcmp(text, "second") ? DIFF_PER_SECOND : DIFF_PER_SAMPLE;
	return 0;
}

/* Scales the base to the length, or the size, of the other profile. */
static void write_pprof(const struct diff *d, FILE *out)
{
	const struct diff_side *a = &d->side[DIFF_BEFORE], *b = &d->side[DIFF_AFTER];
	bool gauge = b->f->kind->class == STORE_GAUGE;
	double scale = d->per == DIFF_PER_SAMPLE ? (double)b->ns / (double)a->ns :
		       gauge                     ? 1 :
						   b->seconds / a->seconds;
	struct fold *both = fold_join(a->f, scale, b->f);

	pprof_write(both, out); /* a write error is reported at the end */
	fold_free(both);
}

static int write_file(const struct verb_call *call, const struct diff_view *v, enum form form,
		      struct err *e)
{
	const struct diff_args *a = call->args;
	cleanup_outfile struct outfile out = OUTFILE_INIT;
	uint64_t bytes = 0;
	char size[32];
	unsigned width;
	int ret = svg_width_of(a->width, form == FORM_SVG, &width, e);

	if (!ret)
		ret = outfile_open(&out, a->output, e);
	if (ret)
		return ret;
	if (form == FORM_HTML)
		ret = diff_html_write(v, a->source_url, out.f, e);
	else if (form == FORM_SVG)
		diff_svg_write(v, width, out.f);
	else if (form == FORM_TREE)
		diff_tree_json(v, out.f);
	else if (form == FORM_FOLDED)
		diff_folded(v, out.f);
	else
		write_pprof(v->d, out.f);
	if (!ret)
		ret = outfile_commit(&out, &bytes, e);
	if (ret)
		return ret;
	if (!call->quiet)
		fprintf(stderr, "wrote %s (%s)\n", a->output,
			units_bytes(bytes, size, sizeof(size)));
	if (!call->quiet && form == FORM_HTML)
		fputs("open it in a browser: colours show the change, d switches between A, B and the change, ? lists all keys\n",
		      stderr);
	if (!call->quiet && form == FORM_PPROF)
		fprintf(stderr, "next: go tool pprof -top %s\n", a->output);
	return 0;
}

static int print_stdout(const struct verb_call *call, const struct diff_view *v, struct err *e)
{
	int ret = 0;

	if (call->json)
		ret = diff_json(v, stdout);
	else
		diff_text(v, stdout);
	return verb_flush(ret, e);
}

/* Connections, for two ranges of one store and selection: two containers always have different
 * peers. */
static int talk_read(const struct diff_sides *s, struct diff_view *v, struct netnew *talk,
		     struct err *e)
{
	const struct selection *a = s->sel[DIFF_BEFORE], *b = s->sel[DIFF_AFTER];
	int rc;

	if (!a || !b || s->tags[DIFF_AFTER].n || strcmp(a->filter_text, b->filter_text) ||
	    strcmp(a->store, b->store))
		return 0;
	rc = netnew_read(a, b, talk, e);
	v->talk = rc ? NULL : talk;
	return rc;
}

static int diff_run(struct verb_call *call, struct err *e)
{
	const struct diff_args *a = call->args;
	struct diff_side_args in = {.store = call->store,
				    .select = call->select,
				    .vs = a->vs,
				    .before = a->before,
				    .after = a->after,
				    .baseline_ns = a->baseline_ns,
				    .words = call->words,
				    .n_words = call->n_words,
				    .type = a->type,
				    .request = a->request,
				    .slower = a->slower,
				    .slow = a->slow};
	struct diff_sides sides = {0};
	struct diff_view v = {.sides = &sides,
			      .rows = a->rows ? (size_t)a->rows : DEFAULT_ROWS,
			      .wide = call->wide,
			      .quiet = call->quiet};
	struct netnew talk = {0};
	struct diff *d = NULL;
	enum diff_per per;
	enum form form;
	int ret = form_of(call, &form, e);

	if (ret)
		return ret;
	in.opts = (struct fold_opts){.slices = form == FORM_PPROF ? 0 : DIFF_SLICES,
				     .cells = form != FORM_PPROF,
				     .no_inline = a->no_inline,
				     .interpreter = a->interpreter,
				     .leaves = form == FORM_PPROF || form == FORM_HTML,
				     .functions = form != FORM_PPROF && form != FORM_HTML};
	in.no_tree = form == FORM_TEXT || form == FORM_JSON;
	ret = diff_sides_make(&in, &sides, e);
	if (!ret)
		ret = per_of(a->per     ? a->per :
			     a->request ? "sample" :
					  NULL,
			     &sides, &per, e); /* how many requests they represent is unknown */
	if (!ret)
		ret = diff_make(sides.fold[DIFF_BEFORE], sides.fold[DIFF_AFTER], per, ALPHA, &d, e);
	v.d = d;
	if (!ret && !a->output)
		ret = talk_read(&sides, &v, &talk, e);
	if (!ret)
		ret = a->output ? write_file(call, &v, form, e) : print_stdout(call, &v, e);
	diff_free(d);
	netnew_release(&talk);
	diff_sides_release(&sides);
	return ret;
}

const struct verb verb_diff = {
	.name = "diff",
	.summary = "compare two profiles, and tell changes from noise",
	.usage = "[WHAT] [BEFORE AFTER] [-o FILE]",
	.examples = DIFF_EXAMPLES,
	.more = "--vs-RANGE, --vs-FILTER: the same options for the profile to compare with (--vs-from, --vs-container)",
	.options = DIFF_OPTIONS,
	.args_size = sizeof(struct diff_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_SELECT_LATER | VERB_JSON |
		VERB_PAGES,
	.run = diff_run,
};
