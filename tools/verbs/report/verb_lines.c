/* SPDX-License-Identifier: Apache-2.0 */
/* sonde lines: self and total of each source line of a function, with the text if the file can be
 * read here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "tools/cli/verb.h"
#include "tools/fold/fold.h"
#include "tools/fold/ranking/hotlines.h"
#include "tools/fold/ranking/sourcefile.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/print/wrap.h"

#define DEFAULT_FUNCTIONS 5
#define DEFAULT_CONTEXT   2
#define MAX_CONTEXT       1000

struct lines_args {
	uint64_t functions;
	const char *context;
	struct option_list source_dir;
	bool interpreter;
};

static const struct option LINES_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N",
	 "how many functions to show if several match (default 5; 0: all)",
	 offsetof(struct lines_args, functions)},
	{"context", 0, OPTION_STRING, "N", "lines of source around each measured one (default 2)",
	 offsetof(struct lines_args, context)},
	{"source-dir", 0, OPTION_LIST, "DIR",
	 "where the source files are; OLD=NEW replaces OLD at the start of a path by NEW",
	 offsetof(struct lines_args, source_dir)},
	{"interpreter", 0, OPTION_FLAG, NULL,
	 "show the interpreter's own frames among those of its scripts",
	 offsetof(struct lines_args, interpreter)},
	{0},
};

static const char *const LINES_EXAMPLES[] = {
	"sonde lines compress_block",
	"sonde lines '^handle_' --container web --last 1h",
	"sonde lines main --source-dir ~/src/app --source-dir /build=/home/user/src",
	NULL,
};

struct view {
	const struct verb_call *call;
	const struct lines_args *args;
	const struct fold *f;
	uint32_t context;
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* --- why there is nothing --- */

static bool module_has_lines(const struct fold *f, const char *module)
{
	for (size_t i = 0; i < f->n_frames; i++)
		if (f->frames[i].line && !strcmp(f->frames[i].module, module))
			return true;
	return false;
}

static int no_lines(const struct view *v, const struct hotlines *h, struct err *e)
{
	const struct fold_frame *fr = &v->f->frames[h->functions[0].frame];
	const char *file = *fr->module_path ? fr->module_path : fr->module;

	err_set(e, -ENODATA, EXIT_NOTHING, "no source lines are known for '%.200s' (%.100s): %s",
		fr->name, fr->module,
		fr->origin == FOLD_KERNEL ?
			"sonde stores no source lines for kernel functions" :
		fr->origin == FOLD_JIT ?
			"it was compiled at run time, and its perf map contains only names" :
		fr->origin == FOLD_UNKNOWN ?
			"its code belongs to no file" :
		module_has_lines(v->f, fr->module) ?
			"the debug information of its file does not cover this function" :
			"no debug information for its file was found during the recording");
	if (fr->origin == FOLD_NATIVE || fr->origin == FOLD_GO)
		err_fix(e,
			"install the debug symbols of %.200s (on Debian: package NAME-dbgsym or NAME-dbg), then: sudo sonde symbolize",
			file);
	else
		err_fix(e, "sonde stacks --callees '%.200s'", fr->name);
	return -ENODATA;
}

/* --- JSON --- */

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static json_t *line_row(const struct view *v, const struct hotfunction *fn, const struct hotline *l,
			const struct sourcefile *source)
{
	const struct fold_frame *fr = &v->f->frames[fn->frame];
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	bool has_text = source && sourcefile_line(source, l->line, &text);
	json_t *o = json_object();

	json_object_set_new(o, "function", json_text(fr->name));
	json_object_set_new(o, "module", json_text_or_null(fr->module));
	json_object_set_new(o, "file", json_text_or_null(l->file));
	json_object_set_new(o, "line", json_number_or_null(l->line, l->line));
	json_object_set_new(o, "inlined", json_boolean(fn->inlined));
	set_number(o, "self_ns", l->self_ns);
	set_number(o, "total_ns", l->total_ns);
	set_number(o, "self_samples", l->self_samples);
	set_number(o, "total_samples", l->total_samples);
	json_object_set_new(o, "self_share", json_real(percent(l->self_ns, fn->total_ns) / 100));
	json_object_set_new(o, "total_share", json_real(percent(l->total_ns, fn->total_ns) / 100));
	json_object_set_new(o, "text", has_text ? json_text(strbuf_str(&text)) : json_null());
	return o;
}

static void function_rows(const struct view *v, const struct hotfunction *fn, json_t *j)
{
	struct sourcefile *source = NULL;
	struct sourcereader reader;
	const char *file = "", *why;

	sourcereader_of(v->f, v->call->sel, &v->f->frames[fn->frame], &reader);
	for (size_t i = 0; i < fn->n_lines; i++) {
		const struct hotline *l = &fn->lines[i];

		if (strcmp(file, l->file)) {
			sourcefile_close(source);
			source = *l->file ? sourcefile_open(l->file, &v->args->source_dir, &reader,
							    &why) :
					    NULL;
			file = l->file;
		}
		json_array_append_new(json_rows(j), line_row(v, fn, l, source));
	}
	sourcefile_close(source);
}

static int print_json(const struct view *v, const struct hotlines *h, size_t n)
{
	json_t *j = json_envelope("lines", v->f->from_ns, v->f->to_ns);
	size_t total = 0, of = 0;

	for (size_t i = 0; i < n; i++)
		function_rows(v, &h->functions[i], j);
	for (size_t i = 0; i < h->n && (i < n || h->functions[i].has_lines); i++, of++)
		total += h->functions[i].n_lines;
	json_object_set_new(j, "functions", json_integer((json_int_t)of));
	json_bound_n(j, total, of);
	return json_print(j, stdout, 1);
}

/* --- text --- */

static void print_row(const struct view *v, const struct hotfunction *fn, const struct hotline *l,
		      uint32_t line, const char *text)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT, cut = STRBUF_INIT;
	unsigned width = v->call->wide ? 0 : term_width(stdout);

	if (l && l->self_samples)
		strbuf_addf(&s, "%6.1f %%", percent(l->self_ns, fn->total_ns));
	else
		strbuf_addf(&s, "%8s", l ? "-" : "");
	if (l)
		strbuf_addf(&s, "  %6.1f %%  %8llu", percent(l->total_ns, fn->total_ns),
			    (unsigned long long)l->total_samples);
	else
		strbuf_addf(&s, "  %8s  %8s", "", "");
	if (line)
		strbuf_addf(&s, "  %6u  ", line);
	else
		strbuf_addf(&s, "  %6s  ", "?");
	if (text && width > s.len + 8)
		term_add_middle(&cut, text, width - s.len);
	else if (text)
		strbuf_addstr(&cut, text);
	printf("%s%s%s%s\n", l ? "" : term_on(stdout, TERM_DIM), strbuf_str(&s), strbuf_str(&cut),
	       l ? "" : term_off(stdout));
}

struct shown { /* one file of a function, being printed */
	const struct view *v;
	const struct hotfunction *fn;
	const struct sourcefile *source; /* NULL: no text */
	uint32_t next;                   /* first line that was not printed, 0 at the beginning */
};

static void print_around(const struct shown *s, uint32_t from, uint32_t to)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (uint32_t k = from; k < to && sourcefile_line(s->source, k, &text); k++)
		print_row(s->v, s->fn, NULL, k, strbuf_str(&text));
}

/* Prints one measured line; `until` is the next one, or UINT32_MAX. */
static void print_line(struct shown *s, const struct hotline *l, uint32_t until)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint32_t context = s->v->context, first = l->line > context ? l->line - context : 1;
	uint32_t behind = until - l->line > context ? l->line + context + 1 : until;

	if (!s->source || l->line > UINT32_MAX - MAX_CONTEXT - 1) {
		print_row(s->v, s->fn, l, l->line, NULL);
		return;
	}
	if (s->next && first > s->next)
		printf("%31s...\n", "");
	print_around(s, s->next > first ? s->next : first, l->line);
	print_row(s->v, s->fn, l, l->line,
		  sourcefile_line(s->source, l->line, &text) ? strbuf_str(&text) :
							       "(no such line)");
	print_around(s, l->line + 1, behind);
	s->next = behind;
}

/* Prints the measured lines of one file, [from, to) of the function's lines, with the lines around
 * them. */
static void print_file(const struct view *v, const struct hotfunction *fn, size_t from, size_t to,
		       const struct sourcereader *reader)
{
	const char *file = fn->lines[from].file, *why = "";
	struct sourcefile *source =
		*file ? sourcefile_open(file, &v->args->source_dir, reader, &why) : NULL;
	struct shown s = {.v = v, .fn = fn, .source = source};

	if (*file)
		term_printf(stdout, "%s\n", file);
	if (*file && !source && !v->call->quiet)
		term_printf(stderr, "cannot show %s: %s (see --source-dir)\n", file, why);
	if (source && sourcefile_mtime_ns(source) > v->f->to_ns && !v->call->quiet)
		term_printf(stderr, "%s changed after the recording: its lines may have moved\n",
			    sourcefile_path(source));
	for (size_t i = from; i < to; i++)
		print_line(&s, &fn->lines[i], i + 1 < to ? fn->lines[i + 1].line : UINT32_MAX);
	sourcefile_close(source);
}

static void print_function(const struct view *v, const struct hotfunction *fn)
{
	const struct fold_frame *fr = &v->f->frames[fn->frame];
	uint64_t whole = v->f->nodes[0].total_ns;
	struct sourcereader reader;
	struct strbuf head cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(
		&head,
		"%s%s%s%s%s%s%s: self %.1f %%, total %.1f %% of the CPU time; below, 100 %% is its total",
		term_on(stdout, TERM_BOLD), fr->name, term_off(stdout), *fr->module ? " (" : "",
		fr->module, *fr->module ? ")" : "", fn->inlined ? ", inlined" : "",
		percent(fn->self_ns, whole), percent(fn->total_ns, whole));
	wrap_print(stdout, strbuf_str(&head), 2);
	sourcereader_of(v->f, v->call->sel, fr, &reader);
	printf("%8s  %8s  %8s  %6s  %s\n", "SELF", "TOTAL", "SAMPLES", "LINE", "SOURCE");
	for (size_t i = 0, next; i < fn->n_lines; i = next) {
		for (next = i + 1;
		     next < fn->n_lines && !strcmp(fn->lines[next].file, fn->lines[i].file); next++)
			;
		print_file(v, fn, i, next, &reader);
	}
}

static void print_text(const struct view *v, const struct hotlines *h, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			putchar('\n');
		print_function(v, &h->functions[i]);
	}
	if (n < h->n && !v->call->quiet)
		fprintf(stderr, "%zu more functions match (-n %zu shows them)\n", h->n - n, h->n);
}

/* --- the verb --- */

static int context_of(const char *text, uint32_t *out, struct err *e)
{
	char *end = NULL;
	unsigned long n = text ? strtoul(text, &end, 10) : DEFAULT_CONTEXT;

	if (text && (*text < '0' || *text > '9' || *end || n > MAX_CONTEXT))
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--context must be a number up to %d, not '%.100s'", MAX_CONTEXT,
			       text);
	*out = (uint32_t)n;
	return 0;
}

static int answer(struct view *v, const char *text, struct err *e)
{
	struct hotlines h;
	int ret = hotlines_init(&h, v->f, text, e);
	size_t n;

	if (ret)
		return ret;
	n = v->args->functions ? (size_t)v->args->functions : DEFAULT_FUNCTIONS;
	if (n > h.n)
		n = h.n;
	while (n > 1 && !h.functions[n - 1].has_lines) /* functions without lines come last */
		n--;
	if (!h.functions[0].has_lines)
		ret = no_lines(v, &h, e);
	else if (v->call->json)
		ret = print_json(v, &h, n);
	else
		print_text(v, &h, n);
	hotlines_release(&h);
	return ret;
}

static int lines_run(struct verb_call *call, struct err *e)
{
	struct view v = {.call = call, .args = call->args};
	struct fold *f = NULL;
	int ret;

	if (call->n_words != 1) {
		err_set(e, -EINVAL, EXIT_USAGE, "%s",
			call->n_words ?
				"lines takes only one function; use filters to narrow the rest" :
				"name a function, or give a regular expression");
		err_fix(e,
			"sonde stacks (the hottest functions)    sonde lines NAME --container web");
		return -EINVAL;
	}
	ret = context_of(v.args->context, &v.context, e);
	if (!ret)
		ret = fold_make(
			call->sel,
			&(struct fold_opts){.interpreter = v.args->interpreter, .leaves = true}, &f,
			e);
	if (ret)
		return ret;
	v.f = f;
	ret = answer(&v, call->words[0], e);
	fold_free(f);
	return ret;
}

const struct verb verb_lines = {
	.name = "lines",
	.summary = "show CPU time by source line of a function",
	.usage = "FUNCTION",
	.examples = LINES_EXAMPLES,
	.options = LINES_OPTIONS,
	.args_size = sizeof(struct lines_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_WORDS | VERB_JSON | VERB_PAGES,
	.run = lines_run,
};
