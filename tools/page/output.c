/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/output.h"

#include <errno.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/shortfall.h"
#include "tools/formats/flame_json.h"
#include "tools/formats/folded.h"
#include "tools/formats/perfscript.h"
#include "tools/formats/pprof.h"
#include "tools/formats/speedscope.h"
#include "tools/page/flame_html.h"
#include "tools/page/flame_svg.h"
#include "tools/page/page_folds.h"
#include "tools/print/outfile.h"

static const struct {
	const char *end;
	enum output_form form;
} FORMS[] = {
	{".html", OUTPUT_HTML},       {".htm", OUTPUT_HTML},
	{".folded", OUTPUT_FOLDED},   {".collapsed", OUTPUT_FOLDED},
	{".svg", OUTPUT_SVG},         {".pb.gz", OUTPUT_PPROF},
	{".pprof", OUTPUT_PPROF},     {".speedscope.json", OUTPUT_SPEEDSCOPE},
	{".perf", OUTPUT_PERFSCRIPT}, {".json", OUTPUT_JSON},
};

static const char *const GROUPS[] = {
	[FOLD_BY_NONE] = "none",
	[FOLD_BY_CONTAINER] = "container",
	[FOLD_BY_PROCESS] = "process",
	[FOLD_BY_THREAD] = "thread",
};

int output_form_of(const char *path, enum output_form *form, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(FORMS); i++)
		if (outfile_ends_with(path, FORMS[i].end)) {
			*form = FORMS[i].form;
			return 0;
		}
	err_set(e, -EINVAL, EXIT_USAGE,
		"cannot tell the format from the name '%s' (known: .html, .svg, .folded, .pb.gz (pprof), .perf, .speedscope.json and .json)",
		path);
	err_fix(e, "sonde flame -o x.html");
	return -EINVAL;
}

int output_group_of(const char *name, enum fold_group *group, struct err *e)
{
	*group = FOLD_BY_NONE;
	for (size_t i = 0; name && i < ARRAY_SIZE(GROUPS); i++)
		if (!strcmp(name, GROUPS[i])) {
			*group = (enum fold_group)i;
			return 0;
		}
	if (!name)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"unknown group '%s' (known: none, container, process and thread)", name);
	err_fix(e, "sonde flame --group container");
	return -EINVAL;
}

static void svg_write(const struct selection *sel, const struct fold *f, unsigned width, FILE *out)
{
	const struct fold *const folds[] = {f};
	const struct flame_page page = {.folds = folds,
					.n_folds = 1,
					.what = sel->what,
					.range = sel->range,
					.filters = sel->filter_text,
					.group = ""};

	flame_svg_write(&page, width, out);
}

static void print_form(enum output_form form, const struct selection *sel, const struct fold *f,
		       const struct output_look *look, FILE *out)
{
	if (form == OUTPUT_SVG)
		svg_write(sel, f, look->width, out);
	else if (form == OUTPUT_FOLDED)
		folded_write(f, out);
	else if (form == OUTPUT_PPROF)
		pprof_write(f, out); /* a write error is reported at the end */
	else if (form == OUTPUT_PERFSCRIPT)
		perfscript_write(f, out);
	else if (form == OUTPUT_SPEEDSCOPE)
		speedscope_write(f, sel->what[0] ? sel->what : f->host, out);
	else
		flame_json_write(f, look->nodes, out);
}

static int html_write(const struct selection *sel, const struct fold_opts *asked,
		      const struct output_look *look, FILE *out, struct err *e)
{
	struct flame_page page = {.what = sel->what,
				  .range = sel->range,
				  .filters = sel->filter_text,
				  .self = sel->self,
				  .group = look->group ? look->group : "",
				  .source_url = look->source_url};
	struct page_folds folds;
	int ret = page_folds_make(&folds, sel, asked, false, e);

	page.folds = (const struct fold *const *)folds.fold;
	page.n_folds = folds.n;
	page.views = folds.views;
	if (!ret && look->lacks)
		shortfall_add(folds.fold[0], look->lacks);
	if (!ret)
		ret = flame_html_write(&page, out, e);
	page_folds_release(&folds);
	return ret;
}

/* Options that the reader of a pprof file chooses there. */
static int not_for_pprof(const struct fold_opts *o, struct err *e)
{
	if (o->group != FOLD_BY_NONE) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"pprof files have no groups; they have labels instead (container, comm, pid, thread, tid)");
		err_fix(e, "sonde flame -o x.pb.gz; go tool pprof -tags x.pb.gz");
		return -EINVAL;
	}
	if (o->lines) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"pprof files always contain lines: --lines is for the other formats");
		err_fix(e, "sonde flame -o x.pb.gz; go tool pprof -lines -top x.pb.gz");
		return -EINVAL;
	}
	return 0;
}

/* perf script has only samples of processes in time. */
static int for_perfscript(struct fold_opts *o, struct err *e)
{
	if (o->group != FOLD_BY_NONE || o->lines || o->wall || o->count ||
	    (o->kind && o->kind != STORE_KIND_CPU)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"the perf script format holds only CPU samples: no other type or unit, no groups, no lines");
		err_fix(e, "sonde export perf-script -o x.perf");
		return -EINVAL;
	}
	o->kind = STORE_KIND_CPU;
	o->leaves = true;
	o->slices = PERFSCRIPT_SLICES;
	return 0;
}

int output_write(enum output_form form, const struct selection *sel, const struct fold_opts *asked,
		 const struct output_look *look, FILE *out, struct err *e)
{
	struct fold_opts opts = *asked;
	struct fold *f = NULL;
	int ret = form == OUTPUT_PPROF ? not_for_pprof(asked, e) : 0;

	if (ret)
		return ret;
	if (form == OUTPUT_HTML)
		return html_write(sel, asked, look, out, e);
	opts.leaves = opts.with = form == OUTPUT_PPROF;
	opts.most_leaves = form == OUTPUT_PPROF ? 1 : 0; /* those of several segments are one */
	if (form == OUTPUT_SVG || (form == OUTPUT_JSON && look->nodes))
		opts.most_nodes = FOLD_NODES;
	if (form == OUTPUT_PERFSCRIPT)
		ret = for_perfscript(&opts, e);
	if (!ret)
		ret = fold_make(sel, &opts, &f, e);
	if (ret)
		return ret;
	if (look->lacks)
		shortfall_add(f, look->lacks);
	print_form(form, sel, f, look, out);
	fold_free(f);
	return ret;
}
