/* SPDX-License-Identifier: Apache-2.0 */
/* sonde check: runs health checks (tools/checks/checks.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/read/reader.h"
#include "tools/checks/checks.h"
#include "tools/checks/checkstate.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/record/daemon.h"

#define INDENT   14
#define STEP_S   10  /* the width of a bucket */
#define BEFORE_S 600 /* what a check looks at begins so long before, or later */
#define LATE_S   20  /* the background recorder stores a bucket at most this much later */

#define DEFAULT_ROWS 100 /* in JSON: more than there are checks */

struct check_args {
	uint64_t rows;
	const char *at, *notify, *state, *dir;
	bool all, list, keep;
};

/* clang-format off */
static const struct option CHECK_OPTIONS[] = {
	{"at", 0, OPTION_STRING, "TIME", "check the host as it was at this time (default: now)", offsetof(struct check_args, at)},
	{"all", 0, OPTION_FLAG, NULL, "also show checks that pass or are not measured", offsetof(struct check_args, all)},
	{"number", 'n', OPTION_MOST, "N", "how many rows in JSON (default 100; 0: all)", offsetof(struct check_args, rows)},
	{"list", 0, OPTION_FLAG, NULL, "list the checks and their thresholds", offsetof(struct check_args, list)},
	{"notify", 0, OPTION_STRING, "CMD", "run CMD once for each change of state", offsetof(struct check_args, notify)},
	{"keep", 0, OPTION_FLAG, NULL, "have sonded keep its flight ring for each check that fails, once an hour and check", offsetof(struct check_args, keep)},
	{"state", 0, OPTION_STRING, "FILE", "file that remembers what --notify has sent (default: one per user)", offsetof(struct check_args, state)},
	{"checks", 0, OPTION_STRING, "DIR", "folder of local checks (default: /etc/sonde/checks.d)", offsetof(struct check_args, dir)},
	{0},
};
/* clang-format on */

static const char *const CHECK_EXAMPLES[] = {
	"sonde check",
	"sonde check disk-space inodes --at 03:10",
	"sonde check --list --json",
	"sudo sonde check --keep -q",
	NULL,
};

/* --- which --- */

static int keep_named(struct checkfiles *all, char *const *words, size_t n_words, struct err *e)
{
	bool *keep = mem_array(all->n ? all->n : 1, sizeof(*keep));
	size_t n = 0;

	for (size_t k = 0; k < n_words; k++) {
		struct strbuf hint cleanup_strbuf = STRBUF_INIT;
		struct suggest near;
		bool found = false;

		suggest_init(&near, words[k]);
		for (size_t i = 0; i < all->n; i++) {
			suggest_add(&near, all->rows[i].name);
			keep[i] |= !strcmp(all->rows[i].name, words[k]);
			found |= !strcmp(all->rows[i].name, words[k]);
		}
		if (found)
			continue;
		suggest_say(&near, &hint, "");
		free(keep);
		err_set(e, -ENOENT, EXIT_USAGE, "there is no check named %.60s%s", words[k],
			strbuf_str(&hint));
		err_fix(e, "sonde check --list");
		return -ENOENT;
	}
	for (size_t i = 0; n_words && i < all->n; i++) {
		if (keep[i])
			all->rows[n++] = all->rows[i];
		else
			checkfile_release(&all->rows[i]);
	}
	all->n = n_words ? n : all->n;
	free(keep);
	return 0;
}

static int time_of(const struct check_args *a, int64_t *to_s, struct err *e)
{
	int64_t now = clock_utc_ns(), at;

	if (a->at && when_parse(a->at, now, &at)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--at: '%.60s' is not a valid time", a->at);
		err_fix(e, "sonde help range");
		return -EINVAL;
	}
	*to_s = (a->at ? at / NSEC_PER_SEC : now / NSEC_PER_SEC - LATE_S) / STEP_S * STEP_S;
	return 0;
}

/* --- the list --- */

static size_t most_of(const struct check_args *a)
{
	return a->rows ? (size_t)a->rows : DEFAULT_ROWS;
}

static json_t *about_json(const struct checkfile *c)
{
	json_t *o = json_object();

	json_object_set_new(o, "check", json_text(c->name));
	json_object_set_new(o, "summary", json_text(c->summary));
	json_object_set_new(o, "level", json_string(c->critical ? "critical" : "warning"));
	json_object_set_new(o, "threshold", json_real(c->threshold));
	json_object_set_new(o, "threshold_is", json_text(c->threshold_is));
	json_object_set_new(o, "unit", json_text(c->unit));
	json_object_set_new(o, "for_minutes", json_integer(c->for_min));
	json_object_set_new(o, "window_minutes", json_integer(c->window_min));
	json_object_set_new(o, "needs", json_text_or_null(c->needs));
	json_object_set_new(o, "own", json_boolean(c->own));
	json_object_set_new(o, "query", json_text(c->sql));
	return o;
}

static int list(const struct verb_call *call, const struct checkfiles *all)
{
	static const struct table_column columns[] = {{"CHECK", TABLE_LEFT},
						      {"LEVEL", TABLE_LEFT},
						      {"THRESHOLD", TABLE_LEFT},
						      {"FOR", TABLE_RIGHT},
						      {"WHAT", TABLE_MIDDLE}};
	json_t *j = call->json ? json_envelope("check", 0, 0) : NULL;
	struct table *t = call->json ? NULL : table_new(columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < all->n; i++) {
		const struct checkfile *c = &all->rows[i];

		if (j && i >= most_of(call->args))
			continue;
		if (j) {
			json_array_append_new(json_rows(j), about_json(c));
			continue;
		}
		table_cell(t, c->name);
		table_cell(t, c->critical ? "critical" : "warning");
		table_cellf(t, "%g %s", c->threshold, c->unit);
		table_cellf(t, "%d min", c->for_min);
		table_cell(t, c->summary);
	}
	if (j) {
		json_bound(j, all->n);
		return json_print(j, stdout, 1);
	}
	table_print(t, stdout, call->wide ? 0 : term_width(stdout));
	table_free(t);
	return 0;
}

/* --- results --- */

static bool has_subject(const struct check_result *r)
{
	return r->state != CHECK_FINE && r->state != CHECK_UNMEASURED;
}

static json_t *result_json(const struct check_result *r)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT;
	const bool one = has_subject(r);
	json_t *o = json_object();

	check_say(r, &text);
	check_next(r, &next);
	json_object_set_new(o, "check", json_text(r->check->name));
	json_object_set_new(o, "state", json_string(check_state_name(r->state)));
	json_object_set_new(o, "level", json_string(r->check->critical ? "critical" : "warning"));
	json_object_set_new(o, "subject", one ? json_text(r->subject) : json_null());
	json_object_set_new(o, "value", one ? json_real(r->value) : json_null());
	json_object_set_new(o, "unit", json_text(r->check->unit));
	json_object_set_new(o, "threshold", json_real(r->check->threshold));
	json_object_set_new(o, "for_minutes", json_integer(r->check->for_min));
	json_object_set_new(o, "lasted_minutes",
			    json_number_or_null(r->lasted_min, r->state == CHECK_PENDING));
	json_object_set_new(o, "text",
			    one ? json_text(strbuf_str(&text)) : json_text(r->check->summary));
	json_object_set(o, "evidence", r->evidence ? r->evidence : json_null());
	json_object_set_new(o, "command",
			    one && next.len ? json_text(strbuf_str(&next)) : json_null());
	return o;
}

/* What fails comes first, so that a bound leaves out the rest. */
static void rows_json(const struct check_results *all, bool bad, size_t most, json_t *rows)
{
	for (size_t i = 0; i < all->n && json_array_size(rows) < most; i++)
		if ((all->rows[i].state == CHECK_BAD) == bad)
			json_array_append_new(rows, result_json(&all->rows[i]));
}

static int print_json(const struct check_results *all, size_t most)
{
	json_t *j =
		json_envelope("check", (all->to_s - 60) * NSEC_PER_SEC, all->to_s * NSEC_PER_SEC);

	json_object_set_new(j, "checks", json_integer((json_int_t)all->n_checks));
	json_object_set_new(j, "bad", json_integer((json_int_t)all->bad));
	json_object_set_new(j, "pending", json_integer((json_int_t)all->pending));
	json_object_set_new(j, "recovered", json_integer((json_int_t)all->recovered));
	json_object_set_new(j, "not_measured", json_integer((json_int_t)all->unmeasured));
	rows_json(all, true, most, json_rows(j));
	rows_json(all, false, most, json_rows(j));
	json_bound(j, all->n);
	return json_print(j, stdout, 1);
}

static void print_evidence(const json_t *rows)
{
	const json_t *row, *value;
	const char *key;
	size_t i;

	json_array_foreach (rows, i, row) {
		struct strbuf line cleanup_strbuf = STRBUF_INIT;

		strbuf_addstr(&line, "  ");
		json_object_foreach ((json_t *)(uintptr_t)row, key, value) {
			if (json_is_string(value))
				strbuf_addf(&line, "  %s", json_string_value(value));
			else if (json_is_integer(value))
				strbuf_addf(&line, "  %s %lld", key,
					    (long long)json_integer_value(value));
			else if (json_is_real(value))
				strbuf_addf(&line, "  %s %.4g", key, json_real_value(value));
		}
		term_printf(stdout, "%s\n", strbuf_str(&line));
	}
}

static void print_result(const struct check_result *r, const struct verb_call *call)
{
	const bool one = has_subject(r);
	struct strbuf text cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT,
			   shown cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&text, "%-12s  ",
		    r->state != CHECK_BAD ? check_state_name(r->state) :
		    r->check->critical    ? "CRITICAL" :
					    "WARNING");
	if (one)
		check_say(r, &text);
	else
		strbuf_addf(&text, "%s: %s", r->check->name, r->check->summary);
	fputs(one ? term_on(stdout, r->state == CHECK_RECOVERED ? TERM_GREEN : TERM_RED) : "",
	      stdout);
	strbuf_addshown(&shown, text.buf, text.len);
	wrap_print(stdout, strbuf_str(&shown), INDENT);
	fputs(one ? term_off(stdout) : "", stdout);
	if (r->state != CHECK_BAD)
		return;
	print_evidence(r->evidence);
	check_next(r, &next);
	if (next.len && call->hint_store)
		strbuf_addf(&next, " --store %s", call->hint_store);
	if (next.len)
		term_printf(stdout, "    %s\n", strbuf_str(&next));
}

static void print_text(const struct check_results *all, const struct verb_call *call)
{
	const struct check_args *a = call->args;
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	char at[32];

	for (size_t i = 0; i < all->n; i++)
		if (all->rows[i].state == CHECK_BAD && all->rows[i].check->critical)
			print_result(&all->rows[i], call);
	for (size_t i = 0; i < all->n; i++)
		if (all->rows[i].state == CHECK_BAD && !all->rows[i].check->critical)
			print_result(&all->rows[i], call);
	for (int state = CHECK_PENDING; state <= CHECK_UNMEASURED; state++)
		for (size_t i = 0; i < all->n; i++)
			if ((int)all->rows[i].state == state &&
			    (a->all || state != CHECK_UNMEASURED))
				print_result(&all->rows[i], call);
	for (size_t i = 0; a->all && i < all->n; i++)
		if (all->rows[i].state == CHECK_FINE)
			print_result(&all->rows[i], call);
	strbuf_addf(
		&line,
		"%zu check%s at %s: %zu failed, %zu pending, %zu recovered within the last hour, %zu not measured",
		all->n_checks, all->n_checks == 1 ? "" : "s",
		when_local(all->to_s * NSEC_PER_SEC, clock_utc_ns(), at, sizeof(at)), all->bad,
		all->pending, all->recovered, all->unmeasured);
	wrap_print(stdout, strbuf_str(&line), 4);
}

static int notify(const struct verb_call *call, const struct check_results *r,
		  const struct checkfiles *checks, struct err *e)
{
	const struct check_args *a = call->args;
	size_t told, failed;
	int rc = checkstate_notify(a->state, call->store, a->notify, r, checks, &told, &failed, e);

	if (!rc && failed)
		rc = err_set(
			e, -EIO, EXIT_RUNTIME,
			"the --notify program failed for %zu of %zu changes; they will be sent again",
			failed, told + failed);
	return rc;
}

/* Without sonded, or a ring, nothing can be kept; the answer is that of the checks all the same. */
static void keep(const struct verb_call *call, const struct check_results *r)
{
	struct err e = {0};

	for (size_t i = 0; i < r->n; i++) {
		struct strbuf why cleanup_strbuf = STRBUF_INIT;
		char cause[72];
		json_t *answer = NULL;

		if (r->rows[i].state != CHECK_BAD)
			continue;
		check_say(&r->rows[i], &why);
		snprintf(cause, sizeof(cause), "check %s", r->rows[i].check->name);
		if (daemon_ask(call->store,
			       json_pack("{s:s, s:o, s:o}", "do", "keep", "cause", json_text(cause),
					 "why", json_text(strbuf_str(&why))),
			       &answer, &e)) {
			log_warn("nothing is kept: %s", e.what);
			return;
		}
		json_decref(answer);
	}
}

/* Nothing was recorded that a check could look at: "0 failed" would read as "all is well". */
static int nothing_checked(const struct verb_call *call, const struct check_results *r,
			   struct err *e)
{
	const int64_t to_ns = r->to_s * NSEC_PER_SEC;
	cleanup_free struct store_segment_info *v = NULL;
	char at[32];
	size_t n = 0;

	if (!r->unmeasured || r->n_checks - r->unmeasured > 1 || r->bad || r->pending ||
	    r->recovered ||
	    store_segments(call->store, to_ns - BEFORE_S * NSEC_PER_SEC, to_ns, &v, &n, NULL) || n)
		return 0;
	err_set(e, -ENODATA, EXIT_NOTHING,
		"no check has anything to look at: nothing was recorded in the 10 minutes before %s",
		when_local(to_ns, clock_utc_ns(), at, sizeof(at)));
	err_fix(e, "sudo sonde up    records from now on; sonde status (what was recorded when)");
	return -ENODATA;
}

static int check_run(struct verb_call *call, struct err *e)
{
	const struct check_args *a = call->args;
	struct check_results results = {0};
	struct checkfiles checks;
	int64_t to_s;
	int rc = checkfiles_read(a->dir, &checks, e);

	if (rc)
		return rc;
	rc = keep_named(&checks, call->words, call->n_words, e);
	if (!rc && (a->notify || a->keep) && a->at)
		rc = err_set(e, -EINVAL, EXIT_USAGE,
			     "%s is about what happens now; it cannot be combined with --at",
			     a->notify ? "--notify" : "--keep");
	if (!rc && a->list) {
		rc = list(call, &checks);
		checkfiles_release(&checks);
		return rc;
	}
	rc = rc ? rc : time_of(a, &to_s, e);
	if (!rc)
		rc = checks_run(call->store, &checks, to_s, &results, e);
	if (!rc)
		rc = nothing_checked(call, &results, e);
	if (!rc && call->json)
		rc = print_json(&results, most_of(a));
	else if (!rc)
		print_text(&results, call);
	call->status = results.bad ? EXIT_RUNTIME : EXIT_OK;
	if (!rc && a->notify)
		rc = notify(call, &results, &checks, e);
	if (!rc && a->keep)
		keep(call, &results);
	check_results_release(&results);
	checkfiles_release(&checks);
	return rc;
}

const struct verb verb_check = {
	.name = "check",
	.summary = "run health checks: memory, disks, limits, restarts (exit code 1 if one fails)",
	.usage = "[CHECK...] [--at TIME] [--notify CMD] [--keep]",
	.examples = CHECK_EXAMPLES,
	.options = CHECK_OPTIONS,
	.args_size = sizeof(struct check_args),
	.uses = VERB_STORE | VERB_WORDS | VERB_JSON | VERB_READS,
	.run = check_run,
};
