/* SPDX-License-Identifier: Apache-2.0 */
/* sonde top: running processes, live or at an earlier time (tools/processes/live.h). Prints one
 * table if the output is not a terminal. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "schema/base/cli/escapes.h"
#include "schema/base/clock.h"
#include "tools/cli/verb.h"
#include "tools/print/reading.h"
#include "tools/print/term.h"
#include "tools/processes/live.h"
#include "tools/processes/live_screen.h"
#include "tools/processes/process_report.h"
#include "tools/requests/runprint.h"

#define EVERY_NS       (2 * (int64_t)NSEC_PER_SEC)
#define LEAST_EVERY_NS (NSEC_PER_SEC / 2)
#define ROWS           20 /* of running requests */

struct top_args {
	struct process_report_args who; /* must be first: process_report_run takes it */
	int64_t every_ns;
};

/* clang-format off */
static const struct option TOP_OPTIONS[] = {
	{"every", 0, OPTION_DURATION, "TIME", "how often to refresh (default 2s)", offsetof(struct top_args, every_ns)},
	{"number", 'n', OPTION_MOST, "N", "how many rows if the output is not a terminal (default 20; 0: all)", offsetof(struct top_args, who.rows)},
	{"sort", 0, OPTION_STRING, "KEY", "cpu (default), pid, name, start, mem, io, disk, or a recorded kind: offcpu, inuse", offsetof(struct top_args, who.sort)},
	{0},
};
/* clang-format on */

static const char *const TOP_EXAMPLES[] = {
	"sonde top", "sonde top web --last 1m", "sonde top --at 03:10", "sonde top -n 5 | cat",
	NULL,
};

static bool is_screen(const struct verb_call *call)
{
	return !call->json && isatty(STDIN_FILENO) && term_is_tty(stdout) && escapes_known();
}

/* The answer of `ps` for the range, and what had no answer at its end: in JSON, or on stderr. */
static int once(struct verb_call *call, const struct live *l, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	struct top_args *a = call->args;
	struct reqrunning r = {0};
	struct live_window w;
	int ret = select_new(live_select(l, 0, &w), call->store, call->words, call->n_words,
			     call->quiet, &call->sel, e);

	if (!ret && !(call->quiet && !call->json))
		ret = reqrunning_at(l->asked, l->store, l->words, l->n_words, l->to_ns, &r, e);
	a->who.running_total = r.n;
	if (!ret && call->json)
		a->who.running = runprint_rows_json(&r, r.n < ROWS ? r.n : ROWS);
	ret = ret ? ret : process_report_run(call, PROCESS_ROWS_BY_PROCESS, e);
	runprint_say(&r, &text);
	if (!ret && !call->json && text.len)
		fprintf(stderr, "%s\n", strbuf_str(&text));
	json_decref(a->who.running);
	reqrunning_release(&r);
	return ret;
}

static int top_run(struct verb_call *call, struct err *e)
{
	const struct top_args *a = call->args;
	struct live l = {.store = call->store,
			 .asked = call->select,
			 .words = call->words,
			 .n_words = call->n_words,
			 .sort = a->who.sort ? a->who.sort : "cpu"};
	struct process_rows none = {0};
	int ret = process_rows_sort(&none, l.sort, e);

	if (ret == -ENODATA) /* another range may contain it */
		ret = 0;
	if (!ret && a->every_ns && a->every_ns < LEAST_EVERY_NS)
		ret = err_set(e, -EINVAL, EXIT_USAGE, "--every must be at least half a second");
	if (!ret)
		ret = live_init(&l, e);
	if (ret)
		return ret;
	if (!is_screen(call))
		return once(call, &l, e);
	reading_quiet();
	live_read(&l);
	if (l.why.exit == EXIT_USAGE || l.why.exit == EXIT_STORE) { /* no range would help */
		*e = l.why;
		ret = l.why.code;
	} else {
		ret = live_screen(&l, a->every_ns ? a->every_ns : EVERY_NS, e);
	}
	live_release(&l);
	return ret;
}

const struct verb verb_top = {
	.name = "top",
	.summary = "show running processes live, or those of an earlier time",
	.usage = "[WHAT] [--last 30s | --at TIME] [--every TIME]",
	.examples = TOP_EXAMPLES,
	.more = "on a terminal: arrow keys choose a row and step through time, Enter shows stacks, ? lists all keys",
	.options = TOP_OPTIONS,
	.args_size = sizeof(struct top_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_SELECT_LATER | VERB_JSON,
	.run = top_run,
};
