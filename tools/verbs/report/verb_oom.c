/* SPDX-License-Identifier: Apache-2.0 */
/* sonde oom: explains each out-of-memory kill (tools/events/oomstory.h). */
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/units.h"
#include "tools/cli/verb.h"
#include "tools/events/eventlogs.h"
#include "tools/events/oomstory.h"
#include "tools/print/json.h"
#include "tools/print/spark.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"

#define DEFAULT_ROWS 3
#define WEEK_NS      (7 * 24 * 3600 * NSEC_PER_SEC)
#define COMMAND_NS   (60 * NSEC_PER_SEC)
/* a container ends within this time after one of its processes was killed, if it does */
#define ENDED_NS (10 * NSEC_PER_SEC)

struct oom_args {
	uint64_t rows;
};

static const struct option OOM_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N",
	 "show N (default 3; 0: all), the newest of each container first",
	 offsetof(struct oom_args, rows)},
	{0},
};

static const char *const OOM_EXAMPLES[] = {
	"sonde oom --last 24h",
	"sonde oom web --from 03:00 --to 03:30 --json",
	NULL,
};

static const char *who(const struct oomstory *x)
{
	return *x->container ? x->container : x->comm;
}

/* --- JSON --- */

static json_t *bytes_or_null(int64_t n)
{
	return n < 0 ? json_null() : json_integer((json_int_t)n);
}

static json_t *holders_json(const struct oomstory_holder *h, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "name", json_text(h[i].name));
		json_object_set_new(o, "pid", h[i].pid ? json_integer(h[i].pid) : json_null());
		json_object_set_new(o, "bytes", json_integer((json_int_t)h[i].bytes));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *curve_json(const struct oomstory *x)
{
	json_t *list = json_array();

	for (size_t i = 0; i < OOMSTORY_POINTS; i++) {
		json_t *o = json_object();

		json_set_time(o, "from",
			      x->at_ns - OOMSTORY_BEFORE_NS +
				      (int64_t)i * (OOMSTORY_BEFORE_NS / OOMSTORY_POINTS));
		json_object_set_new(o, "bytes", bytes_or_null((int64_t)x->curve[i]));
		json_array_append_new(list, o);
	}
	return list;
}

static const struct eventlog *log_of(const struct eventlogs *logs, const struct oomstory *x)
{
	return *x->container ? eventlogs_find(logs, x->container, x->at_ns - NSEC_PER_SEC,
					      x->at_ns + ENDED_NS) :
			       NULL;
}

static json_t *row_json(const struct oomstory *x, const struct eventlogs *logs)
{
	json_t *o = json_object(), *stacks = json_array();

	json_set_time(o, "time", x->at_ns);
	json_object_set_new(o, "comm", json_text(x->comm));
	json_object_set_new(o, "pid", json_integer(x->pid));
	json_object_set_new(o, "container", json_text_or_null(x->container));
	json_object_set_new(o, "kernel_told", json_boolean(x->cgroup != NULL));
	json_object_set_new(o, "cgroup", json_text_or_null(x->cgroup));
	json_object_set_new(o, "own_limit", json_boolean(x->own_limit));
	json_object_set_new(o, "asked_by", json_text_or_null(x->asked_by));
	json_object_set_new(o, "limit_bytes", bytes_or_null(x->limit));
	json_object_set_new(o, "used_bytes", bytes_or_null(x->usage));
	json_object_set_new(o, "anon_bytes", bytes_or_null(x->anon));
	json_object_set_new(o, "file_bytes", bytes_or_null(x->file));
	json_object_set_new(o, "shmem_bytes", bytes_or_null(x->shmem));
	json_object_set_new(o, "tasks", holders_json(x->tasks, x->n_tasks));
	json_object_set_new(o, "containers", holders_json(x->others, x->n_others));
	json_object_set_new(o, "memory", curve_json(x));
	json_object_set_new(o, "grew", oomgrew_json(&x->grew));
	for (size_t i = 0; i < x->n_stacks; i++) {
		json_t *s = json_object();

		json_object_set_new(s, "function", json_text(x->stacks[i].name));
		json_object_set_new(s, "share", json_real(x->stacks[i].share));
		json_array_append_new(stacks, s);
	}
	json_object_set_new(o, "hottest", stacks);
	json_object_set_new(o, "log", eventlog_json(log_of(logs, x)));
	return o;
}

static int print_json(const struct verb_call *call, const struct oomstories *all,
		      const struct eventlogs *logs)
{
	json_t *j = json_envelope("oom", call->sel->from_ns, call->sel->to_ns);

	for (size_t i = 0; i < all->n; i++)
		json_array_append_new(json_rows(j), row_json(&all->rows[i], logs));
	json_bound(j, all->total);
	return json_print(j, stdout, 1);
}

/* --- for people --- */

static void add_holders(struct strbuf *out, const struct oomstory_holder *h, size_t n)
{
	char bytes[32];

	for (size_t i = 0; i < n; i++) {
		strbuf_addf(out, "%s%.64s", i ? ", " : "", h[i].name);
		if (h[i].pid)
			strbuf_addf(out, " (%u)", h[i].pid);
		strbuf_addf(out, " %s", units_bytes(h[i].bytes, bytes, sizeof(bytes)));
	}
}

static void print_line(struct strbuf *line)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	strbuf_addshown(&shown, line->buf, line->len);
	wrap_print(stdout, strbuf_str(&shown), 4);
	strbuf_reset(line);
}

static void print_why(const struct oomstory *x, struct strbuf *line)
{
	char limit[32], bytes[32];

	if (!x->cgroup)
		strbuf_addstr(line,
			      "  why: unknown, the kernel log could not be read or did not say");
	else if (*x->cgroup)
		strbuf_addf(line, "  why: %.200s reached its memory limit%s%s",
			    x->own_limit && *x->container ? x->container : x->cgroup,
			    x->limit >= 0 ? " of " : "",
			    x->limit >= 0 ? units_bytes((uint64_t)x->limit, limit, sizeof(limit)) :
					    "");
	else
		strbuf_addstr(line, "  why: the host ran out of memory");
	if (x->asked_by && *x->asked_by)
		strbuf_addf(line, "; %.32s asked for more", x->asked_by);
	if (x->anon >= 0)
		strbuf_addf(line, "; %.32s held %s itself", x->comm,
			    units_bytes((uint64_t)x->anon, bytes, sizeof(bytes)));
	print_line(line);
}

static void print_curve(const struct oomstory *x, struct strbuf *line)
{
	const bool unicode = term_is_tty(stdout) && !strcmp(nl_langinfo(CODESET), "UTF-8");
	char most[32];

	if (x->most < 0)
		return;
	strbuf_addstr(line, "  memory over 15 min: |");
	spark_add(line, x->curve, OOMSTORY_POINTS, x->limit > 0 ? (double)x->limit : x->most,
		  unicode);
	strbuf_addf(line, "| most %s", units_bytes((uint64_t)x->most, most, sizeof(most)));
	if (x->limit > 0)
		strbuf_addf(line, " of %s", units_bytes((uint64_t)x->limit, most, sizeof(most)));
	printf("%s\n", strbuf_str(line));
	strbuf_reset(line);
}

static void print_stacks(const struct oomstory *x, const struct verb_call *call,
			 struct strbuf *line)
{
	char at[40];

	for (size_t i = 0; i < x->n_stacks; i++)
		strbuf_addf(line, "%s%.80s %.0f %%",
			    i ? ", " : "  CPU in the minute before: ", x->stacks[i].name,
			    100 * x->stacks[i].share);
	if (x->n_stacks)
		print_line(line);
	strbuf_addf(line, "  sonde flame --from %s --to",
		    when_zoned(x->at_ns - COMMAND_NS, at, sizeof(at)));
	strbuf_addf(line, " %s", when_zoned(x->at_ns + NSEC_PER_SEC, at, sizeof(at)));
	filter_option(*x->container ? FILTER_CONTAINER : FILTER_COMM, who(x), line);
	if (call->hint_store)
		strbuf_addf(line, " --store %s", call->hint_store);
	printf("%s\n", strbuf_str(line));
	strbuf_reset(line);
}

static void print_story(const struct oomstory *x, const struct verb_call *call,
			const struct eventlogs *logs)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	char time[32];

	strbuf_addf(&line, "%s  %.64s%s%.64s (%u) was killed: out of memory",
		    when_local(x->at_ns, clock_utc_ns(), time, sizeof(time)), x->container,
		    *x->container ? ": " : "", x->comm, x->pid);
	print_line(&line);
	print_why(x, &line);
	if (x->n_tasks) {
		if (x->all_tasks == 1)
			strbuf_addstr(&line, "  the only process that could be killed: ");
		else
			strbuf_addf(&line, "  largest of %zu processes that could be killed: ",
				    x->all_tasks);
		add_holders(&line, x->tasks, x->n_tasks);
		print_line(&line);
	}
	print_curve(x, &line);
	if (x->grew.n) {
		strbuf_addstr(&line, "  grew in the 10 min before: ");
		oomgrew_say(&x->grew, &line);
		print_line(&line);
	}
	if (x->n_others) {
		strbuf_addstr(&line, "  other containers at that time: ");
		add_holders(&line, x->others, x->n_others);
		print_line(&line);
	}
	if (log_of(logs, x)) {
		puts("  its last lines:");
		eventlog_print(log_of(logs, x), stdout);
	}
	print_stacks(x, call, &line);
}

static int oom_run(struct verb_call *call, struct err *e)
{
	const struct oom_args *a = call->args;
	struct eventlogs logs = {0};
	struct oomstories all;
	int rc = oomstories_read(call->sel, a->rows ? a->rows : DEFAULT_ROWS, &all, e);

	if (rc)
		return rc;
	rc = eventlogs_read(call->sel, &logs, e);
	if (!rc && !all.n) {
		rc = err_set(e, -ENOENT, EXIT_NOTHING, "no out-of-memory kills%s%s in %s",
			     *call->sel->what ? " of " : "", call->sel->what, call->sel->range);
		if (call->sel->to_ns - call->sel->from_ns < WEEK_NS)
			err_fix(e, "sonde oom --last 7d");
		else
			err_fix(e, "sonde events (what else happened)");
	} else if (!rc && call->json) {
		rc = print_json(call, &all, &logs);
	}
	for (size_t i = 0; !rc && !call->json && i < all.n; i++) {
		if (i)
			putchar('\n');
		print_story(&all.rows[i], call, &logs);
	}
	if (!rc && !call->json && !call->quiet && all.n < all.total)
		fprintf(stderr, "%zu more kills: -n %zu shows them\n", all.total - all.n,
			all.total);
	oomstories_release(&all);
	eventlogs_release(&logs);
	return rc;
}

const struct verb verb_oom = {
	.name = "oom",
	.summary = "explain out-of-memory kills: whose limit, who held memory, what ran before",
	.usage = "[WHAT] [--last 24h] [-n N]",
	.examples = OOM_EXAMPLES,
	.options = OOM_OPTIONS,
	.args_size = sizeof(struct oom_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = oom_run,
};
