/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/net/netlive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/idmap.h"
#include "tools/net/netnew.h"
#include "tools/print/json.h"
#include "tools/print/reading.h"
#include "tools/print/when.h"
#include "tools/select/select.h"

#define BEFORE_NS (15 * 60 * (int64_t)NSEC_PER_SEC)
/* what is read again: a row may be written late, under its bucket's begin */
#define WINDOW_NS  (90 * (int64_t)NSEC_PER_SEC)
#define EVERY_NS   ((int64_t)NSEC_PER_SEC)
#define SHARE      20 /* it spends at most one part in this many reading */
#define LINES_MOST 50 /* at a time */
#define KNOWN_MOST 262144

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	ended = sig;
}

/* No SA_RESTART: a wait is cut short. */
static void ends_watch(void)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = on_end};

	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		sigaction(sigs[i], &sa, NULL);
}

int netlive_check(const struct verb_call *call, struct err *e)
{
	const struct select_args *a = call->select;

	if (!a->from && !a->to && !a->at && !a->rec)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"--live follows the clock: the only range it takes is --last; edges of that time are not new");
	err_fix(e, "sonde %s --live --last 1h", call->verb->name);
	return -EINVAL;
}

/* What is new in the time up to now; none where nothing was recorded in it. Who is asked for may be
 * absent from a short window: that the words are right is known from the first one. */
static int look(const struct verb_call *call, int64_t last_ns, struct idmap *known,
		struct netnew *out, struct err *e)
{
	struct select_args a = *call->select;
	struct selection *sel = NULL;
	int rc;

	*out = (struct netnew){0};
	a.last_ns = last_ns;
	rc = select_new(&a, call->store, call->what, call->n_what, true, &sel, e);
	if (!rc)
		rc = netnew_follow(sel, known, out, e);
	else if (e->exit == EXIT_NOTHING || (last_ns == WINDOW_NS && e->exit == EXIT_USAGE))
		rc = 0;
	select_free(sel);
	return rc;
}

static void say_json(const struct netnew *x, size_t i)
{
	json_t *o = netnew_edge_json(x, i);

	json_object_set_new(o, "schema", json_string("sonde.net-live/1"));
	json_print(o, stdout, 1);
}

static void say(const struct verb_call *call, const struct netnew *x)
{
	char now[32];

	when_local(clock_utc_ns(), clock_utc_ns(), now, sizeof(now));
	for (size_t i = 0; i < x->n && (call->json || i < LINES_MOST); i++) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT;

		if (call->json) {
			say_json(x, i);
			continue;
		}
		netnew_say(x, i, &text);
		printf("%s  %s\n", now, strbuf_str(&text));
	}
	if (!call->json && x->n > LINES_MOST)
		printf("%s  and %zu more: sonde map --last 1m\n", now, x->n - LINES_MOST);
}

/* false: the reader has closed its end. */
static bool wait_for(int64_t ns)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, (int)(ns / 1000000)) <= 0 ||
	       !(out.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static int written(struct err *e)
{
	const int rc = program_flush(false, e);

	return rc && (errno == EPIPE || ended) ? -EPIPE : rc;
}

static int follow(struct verb_call *call, struct idmap *known, struct err *e)
{
	int64_t pause_ns = EVERY_NS;
	int rc = 0;

	while (!rc && !ended && wait_for(pause_ns) && !ended) {
		int64_t begin = clock_boot_ns();
		struct netnew x;

		rc = look(call, WINDOW_NS, known, &x, e);
		if (!rc)
			say(call, &x);
		netnew_release(&x);
		if (!rc)
			rc = written(e);
		if (known->n > KNOWN_MOST)
			idmap_clear(known);
		pause_ns = SHARE * (clock_boot_ns() - begin);
		pause_ns = pause_ns < EVERY_NS ? EVERY_NS : pause_ns;
	}
	return rc == -EPIPE ? 0 : rc;
}

int netlive_run(struct verb_call *call, struct err *e)
{
	struct idmap known = {0};
	struct netnew before;
	int rc;

	ends_watch();
	reading_quiet();
	call->begun = true;
	rc = look(call, call->select->last_ns ? call->select->last_ns : BEFORE_NS, &known, &before,
		  e);
	netnew_release(&before);
	if (!rc)
		rc = written(e);
	if (!rc && !call->quiet)
		fprintf(stderr, "new edges as they come; Ctrl-C ends it\n");
	if (!rc)
		rc = follow(call, &known, e);
	idmap_release(&known);
	return rc == -EPIPE ? 0 : rc;
}
