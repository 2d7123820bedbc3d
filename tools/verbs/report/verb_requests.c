/* SPDX-License-Identifier: Apache-2.0 */
/* sonde requests: requests between programs in a range: how many, how long they took, what failed
 * (tools/requests). */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/pager.h"
#include "tools/print/reading.h"
#include "tools/print/table.h"
#include "tools/print/when.h"
#include "tools/processes/live.h"
#include "tools/processes/reqdoing.h"
#include "tools/requests/reqprint.h"
#include "tools/requests/requnread.h"
#include "tools/requests/runprint.h"
#include "tools/select/select.h"

#define LIVE_WINDOW_NS (30 * (int64_t)NSEC_PER_SEC)
#define LIVE_EVERY_MS  2000
#define LAG_NS         (3 * (int64_t)NSEC_PER_SEC)

struct requests_args {
	uint64_t rows;
	const char *by, *side;
	bool failed, slowest, running, streams, live;
};

/* clang-format off */
static const struct option REQUESTS_OPTIONS[] = {
	{"by", 0, OPTION_STRING, "WHAT", "operation (default), service, command, process, container, protocol, status", offsetof(struct requests_args, by)},
	{"side", 0, OPTION_STRING, "SIDE", "client or server: as seen by the caller or by the callee (default: both)", offsetof(struct requests_args, side)},
	{"slowest", 0, OPTION_FLAG, NULL, "show single requests, slowest first", offsetof(struct requests_args, slowest)},
	{"running", 0, OPTION_FLAG, NULL, "show requests without an answer yet, longest first (also --at TIME)", offsetof(struct requests_args, running)},
	{"streams", 0, OPTION_FLAG, NULL, "with --slowest, --running: also streams and long polls", offsetof(struct requests_args, streams)},
	{"failed", 0, OPTION_FLAG, NULL, "only operations with errors; with --slowest: only failed requests", offsetof(struct requests_args, failed)},
	{"live", 0, OPTION_FLAG, NULL, "show the last 30 s (or --last), updated every 2 s, until Ctrl-C", offsetof(struct requests_args, live)},
	{"number", 'n', OPTION_MOST, "N", "how many rows (default 30; 0: all)", offsetof(struct requests_args, rows)},
	{0},
};
/* clang-format on */

static const char *const REQUESTS_EXAMPLES[] = {
	"sonde requests --last 15m",
	"sonde requests web --by service --side server",
	"sonde requests --slowest",
	"sonde requests --running",
	"sonde requests --running --at 03:10",
	NULL,
};

static int missing(const struct verb_call *call, bool known, const char *what, struct err *e)
{
	const bool all = !strcmp(what, "no requests") && !select_is_narrow(call->sel);

	return select_nothing(call->sel, known ? NULL : "l7", "requests", what,
			      all ? "sonde net" : "sonde requests", e);
}

/* What had no answer at the end of the range. */
static int running_read(const struct verb_call *call, struct reqrunning *r, struct err *e)
{
	return reqrunning_at(call->select, call->store, call->words, call->n_words,
			     call->sel->to_ns, r, e);
}

static void running_print(const struct reqrunning *r)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	runprint_say(r, &text);
	if (text.len)
		fprintf(stderr, "%s: --running shows %s\n", strbuf_str(&text),
			r->n == 1 ? "it" : "them");
}

static int rows_json(const struct verb_call *call, const struct reqrows *r,
		     const struct requnread *unread, const struct reqrunning *running,
		     uint64_t rows)
{
	const size_t n = table_rows(rows, r->shown);
	json_t *o = json_envelope("requests", call->sel->from_ns, call->sel->to_ns);

	json_object_set_new(o, "bytes", reqprint_bytes_json(r));
	json_side_list(o, "unread_tls", requnread_json(unread, table_rows(rows, unread->n)),
		       unread->n);
	json_side_list(o, "running", runprint_rows_json(running, table_rows(rows, running->n)),
		       running->n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(o), reqprint_row_json(r, &r->rows[i]));
	json_bound(o, r->shown);
	return json_print(o, stdout, 1);
}

static int rows_run(struct verb_call *call, const struct requests_args *a, enum reqrows_by by,
		    struct err *e)
{
	struct requnread unread = {0};
	struct reqrunning running = {0};
	struct reqrows r;
	int rc = reqrows_read(call->sel, by, a->side ? a->side : "", a->failed, &r, e);

	for (r.shown = 0; r.shown < r.n && (!a->failed || r.rows[r.shown].errors); r.shown++)
		;
	if (!rc)
		rc = requnread_read(call->sel, &unread, e);
	if (!rc)
		rc = running_read(call, &running, e);
	if (!rc && !r.shown && !running.n)
		rc = missing(call, r.known, a->failed ? "nothing failed" : "no requests", e);
	else if (!rc && call->json)
		rc = rows_json(call, &r, &unread, &running, a->rows);
	else if (!rc && r.shown)
		table_answer(reqprint_rows(&r, table_rows(a->rows, r.shown)),
			     table_rows(a->rows, r.shown), r.shown, call->wide, call->quiet);
	if (!rc && !call->json && !call->quiet) {
		reqprint_bytes(&r, stderr);
		requnread_print(&unread, stderr);
		running_print(&running);
	}
	reqrunning_release(&running);
	requnread_release(&unread);
	reqrows_release(&r);
	return rc;
}

#define LEFT_OUT                                                                           \
	"%zu requests of kept windows of the flight ring are left out: ask for a shorter " \
	"time (--at TIME, --last 1m)"

static int singles_json(const struct verb_call *call, const struct reqsingles *r, size_t n)
{
	json_t *o = json_envelope("requests", call->sel->from_ns, call->sel->to_ns);

	if (r->streams)
		json_warn(o, "without %zu streams and long polls: --streams shows them",
			  r->streams);
	if (r->left)
		json_warn(o, LEFT_OUT, r->left);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(json_rows(o), reqprint_single_json(&r->rows[i]));
	json_bound(o, r->n);
	return json_print(o, stdout, 1);
}

static int singles_run(struct verb_call *call, const struct requests_args *a, struct err *e)
{
	struct reqsingles r;
	int rc = reqsingles_read(call->sel, a->side ? a->side : "", a->failed,
				 a->streams || a->failed, &r, e);

	r.shown = r.n;
	if (!rc && !r.n)
		rc = missing(
			call, r.known,
			a->failed ? "nothing failed" :
			r.streams ? "no requests other than streams and long polls (--streams)" :
				    "no requests",
			e);
	else if (!rc && call->json)
		rc = singles_json(call, &r, table_rows(a->rows, r.n));
	else if (!rc)
		table_answer(reqprint_singles(&r, table_rows(a->rows, r.n)),
			     table_rows(a->rows, r.n), r.n, call->wide, call->quiet);
	if (!rc && r.streams && !call->json && !call->quiet)
		fprintf(stderr, "without %zu %s: --streams shows %s\n", r.streams,
			r.streams == 1 ? "stream or long poll" : "streams and long polls",
			r.streams == 1 ? "it" : "them");
	if (!rc && r.left && !call->json && !call->quiet)
		fprintf(stderr, LEFT_OUT "\n", r.left);
	reqsingles_release(&r);
	return rc;
}

/* ---- running ---- */

/* Now where something records and no range was given; else the end of the range, or its middle with
 * --at. */
static int moment(const struct verb_call *call, bool live, int64_t *at_ns, struct err *e)
{
	struct live l = {.store = call->store,
			 .asked = call->select,
			 .words = call->words,
			 .n_words = call->n_words};
	struct selection *sel = NULL;
	int rc;

	*at_ns = clock_utc_ns();
	if (live)
		return 0;
	if (!select_has_range(call->select)) {
		rc = live_init(&l, e);
		if (!rc && !l.follows)
			*at_ns = l.to_ns;
		live_release(&l);
		return rc;
	}
	rc = select_new(call->select, call->store, call->words, call->n_words, true, &sel, e);
	if (!rc)
		*at_ns = call->select->at ? sel->from_ns / 2 + sel->to_ns / 2 : sel->to_ns;
	select_free(sel);
	return rc;
}

static void running_note(const struct reqrunning *r, int64_t asked_ns)
{
	char at[40];

	if (!r->n)
		fprintf(stderr, "no request ran at %s for two seconds or more\n",
			when_zoned(r->at_ns, at, sizeof(at)));
	else if (r->ended)
		fprintf(stderr, "the recording ended at %s: what became of %s is not known\n",
			when_zoned(r->at_ns, at, sizeof(at)), r->n == 1 ? "it" : "them");
	else if (r->at_ns < asked_ns - LAG_NS)
		fprintf(stderr, "as of %s: what was recorded later is not stored yet\n",
			when_zoned(r->at_ns, at, sizeof(at)));
	if (r->others)
		fprintf(stderr, "%llu more ran and are not listed: too many at a time\n",
			(unsigned long long)r->others);
	if (r->streams)
		fprintf(stderr, "without %zu %s: --streams shows %s\n", r->streams,
			r->streams == 1 ? "stream or long poll" : "streams and long polls",
			r->streams == 1 ? "it" : "them");
}

static int running_show(const struct verb_call *call, struct reqrunning *r, size_t n,
			int64_t asked_ns, struct err *e)
{
	bool now = !r->ended && !call->select->at && asked_ns > clock_utc_ns() - LAG_NS;
	int rc = reqdoing_read(call->select, call->store, r, n, now, e);

	if (!rc && call->json) {
		rc = json_print(runprint_json(r, n), stdout, 1);
	} else if (!rc) {
		if (n)
			table_answer(runprint_rows(r, n), n, r->n, call->wide, call->quiet);
		if (!call->quiet)
			running_note(r, asked_ns);
	}
	return rc;
}

static int running_run(struct verb_call *call, const struct requests_args *a, bool live,
		       struct err *e)
{
	struct reqrunning_window w;
	struct reqrunning r = {0};
	int64_t at_ns;
	int rc = moment(call, live, &at_ns, e);

	if (!rc)
		rc = select_new(reqrunning_select(call->select, at_ns, &w), call->store,
				call->words, call->n_words, true, &call->sel, e);
	if (!rc)
		rc = reqrunning_read(call->sel, at_ns, a->side ? a->side : "", a->streams, &r, e);
	if (!rc && !r.known)
		rc = missing(call, false, "", e);
	else if (!rc)
		rc = running_show(call, &r, table_rows(a->rows, r.n), at_ns, e);
	reqrunning_release(&r);
	select_free(call->sel);
	call->sel = NULL;
	return rc;
}

static int words_of(const struct requests_args *a, enum reqrows_by *by, struct err *e)
{
	*by = REQROWS_BY_OPERATION;
	if (a->by && !reqrows_by(a->by, by)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--by %s: must be one of " REQROWS_BY_NAMES, a->by);
		err_fix(e, "sonde requests --by service");
		return -EINVAL;
	}
	if (a->running && (a->by || a->failed || a->slowest)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--running cannot be combined with --by, --failed or --slowest");
		err_fix(e, "sonde requests --running");
		return -EINVAL;
	}
	if (a->side && strcmp(a->side, "client") && strcmp(a->side, "server")) {
		err_set(e, -EINVAL, EXIT_USAGE, "--side %s: must be client or server", a->side);
		err_fix(e, "sonde requests --side server");
		return -EINVAL;
	}
	return 0;
}

/* ---- live ---- */

/* false: standard output was closed. */
static bool live_wait(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, LIVE_EVERY_MS) <= 0 || !(out.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* Prints the range up to now, once. A range without requests is a valid answer, and so is a
 * selected process that does not exist yet, except the first time. */
static int live_draw(struct verb_call *call, const struct requests_args *a, enum reqrows_by by,
		     bool first, struct err *e)
{
	struct select_args range = *call->select;
	struct selection *sel = NULL;
	bool clear = !call->json && term_is_tty(stdout);
	int rc = 0;

	range.last_ns = range.last_ns ? range.last_ns : LIVE_WINDOW_NS;
	if (!a->running)
		rc = select_new(&range, call->store, call->words, call->n_words, true, &sel, e);
	call->sel = sel;
	if (clear)
		fputs("\x1b[H\x1b[2J", stdout);
	if (!rc)
		rc = a->running ? running_run(call, a, true, e) :
		     a->slowest ? singles_run(call, a, e) :
				  rows_run(call, a, by, e);
	call->sel = NULL;
	select_free(sel);
	if (rc && (e->exit == EXIT_NOTHING || (!first && e->exit == EXIT_USAGE))) {
		if (!call->json)
			printf("%s\n", e->what);
		rc = 0;
	}
	return rc;
}

static int live_run(struct verb_call *call, const struct requests_args *a, enum reqrows_by by,
		    struct err *e)
{
	const struct select_args *r = call->select;
	int rc = 0;

	if (r->from || r->to || r->at || r->rec) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--live follows the clock: it takes no other range than --last");
		err_fix(e, "sonde requests --live --last 1m");
		return -EINVAL;
	}
	reading_quiet();
	call->quiet = call->begun = true;
	for (bool first = true; !rc && (first || live_wait()); first = false) {
		rc = live_draw(call, a, by, first, e);
		if (!rc && (fflush(stdout) || ferror(stdout)))
			return errno == EPIPE ? 0 : verb_flush(-EIO, e);
	}
	return rc;
}

static int requests_run(struct verb_call *call, struct err *e)
{
	const struct requests_args *a = call->args;
	struct selection *sel = NULL;
	enum reqrows_by by;
	int rc = words_of(a, &by, e);

	if (!rc && a->live)
		return live_run(call, a, by, e);
	if (!rc && a->running)
		return verb_flush(running_run(call, a, false, e), e);
	if (!rc)
		rc = select_new(call->select, call->store, call->words, call->n_words, call->quiet,
				&sel, e);
	call->sel = sel;
	if (!rc)
		pager_start();
	if (!rc)
		rc = a->slowest ? singles_run(call, a, e) : rows_run(call, a, by, e);
	call->sel = NULL;
	select_free(sel);
	return verb_flush(rc, e);
}

const struct verb verb_requests = {
	.name = "requests",
	.summary = "show requests between programs: how many, how long they took, what failed",
	.usage =
		"[WHAT] [--by WHAT] [--side SIDE] [--failed] [--slowest] [--running] [--streams] [...]",
	.examples = REQUESTS_EXAMPLES,
	.options = REQUESTS_OPTIONS,
	.args_size = sizeof(struct requests_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_SELECT_LATER | VERB_JSON,
	.run = requests_run,
};
