/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: timeline, processes and flame graphs of a range in one page
 * (tools/page/report.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "tools/cli/verb.h"
#include "tools/fold/fold_kind.h"
#include "tools/net/netmap.h"
#include "tools/page/flame_html.h"
#include "tools/page/map_page.h"
#include "tools/page/page_folds.h"
#include "tools/page/report.h"
#include "tools/page/output_note.h"
#include "tools/print/outfile.h"

struct report_args {
	const char *output, *source_url;
	bool open;
};

static const struct option REPORT_OPTIONS[] = {
	{"output", 'o', OPTION_STRING, "FILE",
	 "output file (default ./sonde-report-WHAT-HHMM.html); - is standard output",
	 offsetof(struct report_args, output)},
	{"source-url", 0, OPTION_STRING, "URL",
	 "how the page links to source; {file} and {line} are filled in",
	 offsetof(struct report_args, source_url)},
	{"open", 0, OPTION_FLAG, NULL, "open the page in a browser",
	 offsetof(struct report_args, open)},
	{0},
};

static const char *const REPORT_EXAMPLES[] = {
	"sonde report --last 10m -o x.html",
	"sonde report web --from 03:00 --to 03:30",
	NULL,
};

static int check_name(const char *path, struct err *e)
{
	enum output_form form;

	if (!strcmp(path, "-") || (!output_form_of(path, &form, NULL) && form == OUTPUT_HTML))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "the name of a report must end in .html: '%.200s'", path);
	err_fix(e, "sonde report -o x.html");
	return -EINVAL;
}

/* The parts of the report about CPU time; a range without CPU time has none. */
static int parts_make(struct report *r, const struct selection *sel, struct page_folds *folds,
		      struct process_rows *procs, struct timeline **t, struct err *e)
{
	int ret;

	if (folds->fold[0]->kind->kind != STORE_KIND_CPU)
		return 0;
	r->cpu = folds->fold[0];
	process_rows_init(procs, r->cpu, PROCESS_ROWS_BY_PROCESS);
	r->procs = procs;
	fold_shed(folds->fold[0], false);
	ret = timeline_make(sel, TIMELINE_BY_BOTH, t, e);
	if (ret)
		return ret;
	r->t = *t;
	r->spikes = timeline_spikes(*t, &r->n_spikes);
	return 0;
}

static int write_page(const struct verb_call *call, struct page_folds *folds,
		      const struct report *r, const struct netmap *m, FILE *out, struct err *e)
{
	const struct report_args *a = call->args;
	const struct selection *sel = call->sel;
	struct strbuf above cleanup_strbuf = STRBUF_INIT, below cleanup_strbuf = STRBUF_INIT;
	const struct flame_page page = {.folds = (const struct fold *const *)folds->fold,
					.n_folds = folds->n,
					.views = folds->views,
					.what = sel->what,
					.range = sel->range,
					.filters = sel->filter_text,
					.self = sel->self,
					.group = "",
					.source_url = a->source_url,
					.title = "report",
					.report = &above,
					.report_below = &below};

	report_above(r, &above);
	map_page_section(m, &below);
	report_below(r, &below);
	return flame_html_write(&page, out, e);
}

static int make_and_write(const struct verb_call *call, const char *path, struct err *e)
{
	cleanup_outfile struct outfile out = OUTFILE_INIT;
	struct page_folds folds;
	struct timeline *t = NULL;
	struct process_rows procs = {0};
	struct report r = {0};
	struct netmap m = {0};
	uint64_t bytes = 0;
	int ret = page_folds_make(&folds, call->sel, &(struct fold_opts){0}, true, e);

	if (!ret)
		ret = parts_make(&r, call->sel, &folds, &procs, &t, e);
	if (!ret)
		ret = netmap_make(call->sel, &m, e);
	if (!ret)
		ret = netmap_add_requests(call->sel, &m, e);
	if (!ret)
		ret = outfile_open(&out, path, e);
	if (!ret)
		ret = write_page(call, &folds, &r, &m, out.f, e);
	if (!ret)
		ret = outfile_commit(&out, &bytes, e);
	if (!ret && strcmp(path, "-"))
		output_note_say(call, path, OUTPUT_HTML, bytes);
	free((void *)(uintptr_t)r.spikes);
	timeline_free(t);
	process_rows_release(&procs);
	netmap_release(&m);
	page_folds_release(&folds);
	return ret;
}

static int report_run(struct verb_call *call, struct err *e)
{
	const struct report_args *a = call->args;
	cleanup_free char *path =
		a->output ? strdup(a->output) : output_note_default_path("report", call->sel);
	int ret;

	if (!path)
		return err_set(e, -ENOMEM, EXIT_RUNTIME, "out of memory");
	ret = a->output ? check_name(path, e) : 0;
	if (!ret)
		ret = make_and_write(call, path, e);
	return ret ? ret : a->open ? output_note_open(path, e) : 0;
}

const struct verb verb_report = {
	.name = "report",
	.summary = "write timeline, processes and flame graphs into one page, to attach or mail",
	.usage = "[WHAT] [-o FILE]",
	.examples = REPORT_EXAMPLES,
	.options = REPORT_OPTIONS,
	.args_size = sizeof(struct report_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON,
	.run = report_run,
};
