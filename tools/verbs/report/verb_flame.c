/* SPDX-License-Identifier: Apache-2.0 */
/* sonde flame: the selection as a flame graph in one file; the suffix of its name decides the
 * format. */
#include <errno.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "tools/cli/verb.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/shortfall.h"
#include "tools/formats/flame_text.h"
#include "tools/page/output.h"
#include "tools/page/svg.h"
#include "tools/page/output_note.h"
#include "tools/print/outfile.h"
#include "tools/print/pager.h"
#include "tools/print/term.h"
#include "tools/requests/reqtags.h"

/* Of .json: some megabytes. A day of a large host has ten times as many and more. */
#define NODES_DEFAULT 20000

struct flame_args {
	const char *type;
	const char *output, *group, *source_url, *request, *slower;
	uint64_t width, nodes;
	bool open, lines, no_inline, interpreter, text;
};

/* clang-format off */
static const struct option FLAME_OPTIONS[] = {
	FOLD_KIND_OR_WALL_OPTION(struct flame_args, type),
	REQTAGS_OPTIONS(struct flame_args, request, slower),
	{"output", 'o', OPTION_STRING, "FILE", "output file: x.html, .svg, .folded, .pb.gz (pprof) or .json; the suffix decides",
	 offsetof(struct flame_args, output)},
	{"text", 0, OPTION_FLAG, NULL, "draw it in the terminal", offsetof(struct flame_args, text)},
	{"source-url", 0, OPTION_STRING, "URL", "how the page links to source; {file} and {line} are filled in",
	 offsetof(struct flame_args, source_url)},
	{"group", 0, OPTION_STRING, "BY", "group by none, container, process or thread",
	 offsetof(struct flame_args, group)},
	{"width", 0, OPTION_UINT, "PIXELS", "width of an .svg (default 1200)", offsetof(struct flame_args, width)},
	{"nodes", 0, OPTION_UINT, "N", "in .json: the N largest frames (default 20000), the others summed", offsetof(struct flame_args, nodes)},
	{"lines", 0, OPTION_FLAG, NULL, "separate functions by line: name (file.c:12)", offsetof(struct flame_args, lines)},
	{"no-inline", 0, OPTION_FLAG, NULL, "count inlined functions as their caller; --interpreter: keep interpreter frames", offsetof(struct flame_args, no_inline)},
	{"interpreter", 0, OPTION_FLAG, NULL, NULL, offsetof(struct flame_args, interpreter)},
	{"open", 0, OPTION_FLAG, NULL, "open the page in a browser", offsetof(struct flame_args, open)},
	{0},
};
/* clang-format on */

static const char *const FLAME_EXAMPLES[] = {
	"sonde flame nginx --last 10m --open",
	"sonde flame --request 'GET /checkout' --slower-than p99 --open",
	NULL,
};

static int text_run(const struct verb_call *call, const struct fold_opts *opts, struct err *e)
{
	bool terminal = term_is_tty(stdout);
	struct fold_opts few = *opts;
	struct fold *f = NULL;
	int ret;

	few.most_nodes = FOLD_NODES;
	ret = fold_make(call->sel, &few, &f, e);

	if (ret)
		return ret;
	if (!call->quiet)
		shortfall_print(f, stderr);
	pager_start();
	flame_text_write(f, stdout, call->wide || !terminal ? 0 : term_width(stdout),
			 terminal && !strcmp(nl_langinfo(CODESET), "UTF-8"));
	fold_free(f);
	return verb_flush(0, e);
}

static int drawn(struct verb_call *call, struct fold_opts *asked, struct err *e)
{
	const struct flame_args *a = call->args;
	cleanup_free char *path =
		a->output ? strdup(a->output) : output_note_default_path("flame", call->sel);
	cleanup_outfile struct outfile out = OUTFILE_INIT;
	enum output_form form = OUTPUT_HTML;
	struct strbuf lacks cleanup_strbuf = STRBUF_INIT;
	struct output_look look = {.source_url = a->source_url,
				   .group = a->group,
				   .nodes = a->nodes ? a->nodes : NODES_DEFAULT,
				   .lacks = call->quiet || call->json ? NULL : &lacks};
	struct fold_opts opts = *asked;
	uint64_t bytes = 0;
	bool page;
	int ret;

	if (!path)
		return err_set(e, -ENOMEM, EXIT_RUNTIME, "out of memory");
	ret = output_group_of(a->group, &opts.group, e);
	if (!ret && a->output)
		ret = output_form_of(path, &form, e);
	if (!ret)
		ret = svg_width_of(a->width, form == OUTPUT_SVG, &look.width, e);
	page = form == OUTPUT_HTML && !a->text &&
	       (a->output || !call->json); /* the page groups by itself */
	if (!ret && opts.wall && !a->group && form != OUTPUT_PPROF && !page)
		opts.group = FOLD_BY_THREAD; /* each thread is as long as the wall time */
	if (ret)
		return ret;
	if (a->text && a->output) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--text draws in the terminal and -o writes a file: choose one");
		err_fix(e, "sonde flame --text > FILE");
		return -EINVAL;
	}
	if (a->text && !call->json)
		return text_run(call, &opts, e);
	if (call->json && !a->output) {
		ret = output_write(OUTPUT_JSON, call->sel, &opts, &look, stdout, e);
		return verb_flush(ret, e);
	}
	ret = outfile_open(&out, path, e);
	if (!ret)
		ret = output_write(form, call->sel, &opts, &look, out.f, e);
	if (!ret)
		ret = outfile_commit(&out, &bytes, e);
	if (ret)
		return ret;
	output_note_say(call, path, form, bytes);
	term_printf(stderr, "%s", strbuf_str(&lacks));
	return a->open ? output_note_open(path, e) : 0;
}

static int flame_run(struct verb_call *call, struct err *e)
{
	const struct flame_args *a = call->args;
	struct fold_opts opts = {
		.lines = a->lines, .no_inline = a->no_inline, .interpreter = a->interpreter};
	struct reqtags tags = {0};
	int ret = fold_kind_or_wall_of(a->type, call->sel, &opts, e);

	if (!ret && a->request && opts.wall)
		ret = err_set(
			e, -EINVAL, EXIT_USAGE,
			"--request needs --type cpu, offcpu or runqueue: type wall has whole threads, not requests");
	if (!ret)
		ret = reqtags_find(call->sel, a->request, a->slower, &tags, e);
	opts.tags = a->request ? &tags.tags : NULL;
	if (!ret)
		ret = drawn(call, &opts, e);
	if (!ret && a->request && !call->quiet && !call->json)
		reqtags_tell(&tags, a->request);
	reqtags_release(&tags);
	return ret;
}

const struct verb verb_flame = {
	.name = "flame",
	.summary = "draw CPU time (or another --type) as a flame graph, in one file",
	.usage = "[WHAT] [-o FILE]",
	.examples = FLAME_EXAMPLES,
	.options = FLAME_OPTIONS,
	.args_size = sizeof(struct flame_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_JSON,
	.run = flame_run,
};
