/* SPDX-License-Identifier: Apache-2.0 */
/* sonde logs: what containers, units and programs logged in a range (tools/logs). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/cli/verb.h"
#include "tools/logs/logprint.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/print/when.h"

struct logs_args {
	uint64_t rows;
	const char *source, *level;
	bool fresh, burst, sample;
};

/* clang-format off */
static const struct option LOGS_OPTIONS[] = {
	{"new", 0, OPTION_FLAG, NULL, "only patterns that are not in the store before the range", offsetof(struct logs_args, fresh)},
	{"burst", 0, OPTION_FLAG, NULL, "only sources that wrote far more than usual, and their patterns", offsetof(struct logs_args, burst)},
	{"level", 0, OPTION_STRING, "LEVEL", "only patterns of this level and worse: fatal, error, warning, info, debug", offsetof(struct logs_args, level)},
	{"source", 0, OPTION_STRING, "TEXT", "only sources with this in their name, such as a unit or a path", offsetof(struct logs_args, source)},
	{"sample", 0, OPTION_FLAG, NULL, "show one message of each pattern, its secrets masked", offsetof(struct logs_args, sample)},
	{"number", 'n', OPTION_MOST, "N", "how many patterns (default 30; 0: all)", offsetof(struct logs_args, rows)},
	{0},
};
/* clang-format on */

static const char *const LOGS_EXAMPLES[] = {
	"sonde logs --last 15m",
	"sonde logs web --at 03:10 --sample",
	"sonde logs --new --last 24h",
	"sonde logs --level error -n 0 --json",
	NULL,
};

struct view {
	const struct verb_call *call;
	const struct logs_args *a;
	struct logread l;
	size_t *which, n; /* patterns that are shown */
};

static int level_parse(const char *s, enum log_badness *out, struct err *e)
{
	*out = LOGREAD_UNKNOWN;
	for (int i = LOGREAD_DEBUG; s && i < LOGREAD_LEVELS; i++)
		if (!strcmp(s, LOGREAD_NAMES[i]))
			*out = (enum log_badness)i;
	if (!s || *out)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"--level %.40s: must be fatal, error, warning, info or debug", s);
	err_fix(e, "sonde logs --level error");
	return -EINVAL;
}

/* What the store has from before the range. */
static int before_read(struct view *v, struct err *e)
{
	struct select_args args = {.from = "1971-01-01T00:00:00Z"};
	struct selection *before = NULL;
	char to[40];
	int rc;

	snprintf(to, sizeof(to), "%lld.%09lld", (long long)(v->call->sel->from_ns / NSEC_PER_SEC),
		 (long long)(v->call->sel->from_ns % NSEC_PER_SEC));
	args.to = to;
	rc = select_new(&args, v->call->store, NULL, 0, true, &before, e);
	if (!rc)
		rc = logread_before(before, &v->l, e);
	v->l.known_before = v->l.known_before || v->l.from_ns < v->call->sel->from_ns;
	select_free(before);
	return rc;
}

static void choose(struct view *v)
{
	v->which = mem_array(v->l.n_patterns + 1, sizeof(*v->which));
	for (size_t i = 0; i < v->l.n_patterns; i++)
		if (v->l.patterns[i].messages && !(v->a->fresh && v->l.patterns[i].before))
			v->which[v->n++] = i;
}

static size_t sources_shown(const struct view *v)
{
	return v->a->burst ? v->l.n_bursts : v->l.n_sources;
}

static int print_json(const struct view *v)
{
	json_t *o = json_envelope("logs", v->call->sel->from_ns, v->call->sel->to_ns),
	       *sources = json_array();
	size_t n = table_rows(v->a->rows, v->n);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(o),
				      logprint_pattern_json(&v->l.patterns[v->which[i]],
							    v->a->fresh && v->l.known_before));
	for (size_t i = 0; i < sources_shown(v); i++)
		json_array_append_new(sources, logprint_source_json(&v->l.sources[i]));
	json_bound(o, v->n);
	json_cut_list(o, "sources", sources, n > 30 ? n : 30);
	return json_print(o, stdout, 1);
}

static void print_shown(const char *s)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	strbuf_addshown(&text, s, strlen(s));
	fputs(strbuf_str(&text), stdout);
}

static void print_samples(const struct view *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct logread_pattern *p = &v->l.patterns[v->which[i]];

		putchar('\n');
		print_shown(p->source);
		printf(", %s: ", LOGREAD_NAMES[p->level]);
		print_shown(p->pattern);
		fputs("\n  ", stdout);
		print_shown(*p->sample ? p->sample : "(no sample)");
		putchar('\n');
	}
}

/* Then all of it is new, which says nothing. */
static void say_began(const struct view *v)
{
	char at[32];

	if (v->call->quiet)
		return;
	printf("logs are recorded since %s, and not before this range: whether a pattern is new is not known, all of them are shown\n\n",
	       when_local(v->l.from_ns, clock_utc_ns(), at, sizeof(at)));
}

static void print_text(const struct view *v)
{
	size_t n = table_rows(v->a->rows, v->n), all = sources_shown(v),
	       shown = all < 15 ? all : 15;
	bool known = v->a->fresh && v->l.n_patterns;
	struct table *t;

	if (v->a->burst && !all) {
		puts("nothing wrote far more lines than usual");
		return;
	}
	if (!v->a->fresh) {
		t = logprint_sources(&v->l, shown);
		table_print(t, stdout, v->call->wide ? 0 : term_width(stdout));
		table_free(t);
		if (shown < all)
			printf("and %zu more\n", all - shown);
		putchar('\n');
	}
	if (v->a->fresh && !v->l.known_before)
		say_began(v);
	if (!v->n) {
		printf("no %spatterns: %s\n", known ? "new " : "",
		       known ? "all of them are in the store from before the range, too" :
			       "warnings and errors have them, and other lines in a burst");
		return;
	}
	table_answer(logprint_patterns(&v->l, v->which, n), n, v->n, v->call->wide, v->call->quiet);
	if (v->a->sample)
		print_samples(v, n);
}

/* `sonde logs` was what `sonde status --log` is now. */
static int nothing(const struct view *v, struct err *e)
{
	int rc = select_nothing(v->call->sel, v->l.known ? NULL : "logs", "logs",
				"no lines of logs", "sonde logs --last 1h", e);

	if (!v->l.known && !v->call->quiet)
		fprintf(stderr, "the log of sonded itself: sonde status --log\n");
	return rc;
}

static int logs_run(struct verb_call *call, struct err *e)
{
	struct view v = {.call = call, .a = call->args};
	struct logread_ask ask = {.source = v.a->source, .burst = v.a->burst};
	int rc = level_parse(v.a->level, &ask.least, e);

	if (rc)
		return rc;
	rc = logread(call->sel, &ask, &v.l, e);
	if (!rc && !v.l.n_sources)
		rc = nothing(&v, e);
	else if (!rc && v.a->fresh)
		rc = before_read(&v, e);
	if (!rc) {
		choose(&v);
		if (call->json)
			rc = print_json(&v);
		else
			print_text(&v);
	}
	free(v.which);
	logread_release(&v.l);
	return verb_flush(rc, e);
}

const struct verb verb_logs = {
	.name = "logs",
	.summary =
		"show what was logged: lines by container or unit, errors by their words, what is new",
	.usage = "[WHAT] [--new] [--burst] [--level LEVEL] [-n N]",
	.examples = LOGS_EXAMPLES,
	.more = "The log of sonded itself: sonde status --log",
	.options = LOGS_OPTIONS,
	.args_size = sizeof(struct logs_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = logs_run,
};
