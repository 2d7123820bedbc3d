/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: a capture in the foreground. The loaders do the work, one for each family (loaderset); this shows their
 * progress, and at the end says who was hottest and what to type next.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/fold.h"
#include "tools/helper.h"
#include "tools/hottest.h"
#include "tools/json.h"
#include "tools/loaderset.h"
#include "tools/select.h"
#include "tools/symbolize.h"
#include "tools/term.h"
#include "tools/verb.h"

#define BAR 20
#define PLAIN_EVERY_NS (10 * NSEC_PER_SEC)
#define FREQ_MAX 4999

struct record_args {
	int64_t duration_ns;
	uint64_t freq;
	struct option_list pid, container, cgroup, comm;
	const char *args, *families;
	bool debuginfod;
	bool no_lines;
};

struct record {
	const struct verb_call *call;
	struct loaderset loaders;
	uint64_t token;        /* what their runs have in common, 0: there is one alone */
	bool tty;
	int64_t said_ns;       /* when the last plain line was printed */
	double asked_s;        /* 0: endless */
	int64_t rec;           /* number of the recording, 0: not known */
	bool newest;           /* none began later */
	int64_t from_ns, to_ns;
	int command_status;    /* as of wait(2), -1: no command, or it has not ended */
};

/* --- the loaders' command lines --- */

static void argv_addf(struct argv *a, const char *name, long long value, const char *unit)
{
	char text[64];

	snprintf(text, sizeof(text), "%lld%s", value, unit);
	argv_add(a, name);
	argv_add(a, text);
}

static void argv_add_list(struct argv *a, const char *name, const struct option_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		argv_add(a, name);
		argv_add(a, l->items[i]);
	}
}

static void fill_argv(struct argv *a, void *ctx, const struct probe_family *f, int fd)
{
	const struct record *r = ctx;
	const struct verb_call *call = r->call;
	const struct record_args *o = call->args;

	if (o->duration_ns)
		argv_addf(a, "--duration", o->duration_ns / 1000000, "ms");
	if (o->freq && f->has_freq)
		argv_addf(a, "--freq", (long long)o->freq, "");
	argv_add_list(a, "--pid", &o->pid);
	argv_add_list(a, "--container", &o->container);
	argv_add_list(a, "--cgroup", &o->cgroup);
	argv_add_list(a, "--comm", &o->comm);
	if (o->args) {
		argv_add(a, "--args");
		argv_add(a, o->args);
	}
	if (o->no_lines)
		argv_add(a, "--no-lines");
	argv_add(a, "--store");
	argv_add(a, call->store);
	argv_add(a, "--bucket");
	argv_add(a, "1s");
	if (r->token)
		argv_addf(a, "--recording", (long long)r->token, "");
	argv_addf(a, "--progress-fd", fd, "");
	if (call->n_words) {
		argv_add(a, "--");
		for (size_t i = 0; i < call->n_words; i++)
			argv_add(a, call->words[i]);
	}
}

/* --- progress --- */

static double num(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* A number of all loaders together; `which` 'p': as of their last progress, 'd': of what they have done. */
static double sum_of(const struct record *r, char which, const char *key)
{
	double sum = 0;

	for (size_t i = 0; i < r->loaders.n; i++)
		sum += num(which == 'p' ? r->loaders.v[i].progress : r->loaders.v[i].done, key);
	return sum;
}

/* The largest: of what they have in common. */
static double max_of(const struct record *r, const char *key)
{
	double max = 0;

	for (size_t i = 0; i < r->loaders.n; i++)
		max = num(r->loaders.v[i].progress, key) > max ? num(r->loaders.v[i].progress, key) : max;
	return max;
}

/* "1 204 samples", or for each family "cpu 1 204 samples, offcpu 31 events" */
static void add_counts(const struct record *r, char which, struct strbuf *out)
{
	for (size_t i = 0; i < r->loaders.n; i++) {
		const struct loader *l = &r->loaders.v[i];
		const json_t *ev = which == 'p' ? l->progress : l->done;
		char n[32];

		strbuf_addf(out, "%s%s%s%s %ss", out->len ? ", " : "", r->loaders.n > 1 ? l->family->name : "",
			    r->loaders.n > 1 ? " " : "", term_count((uint64_t)num(ev, "samples"), n, sizeof(n)), l->family->event);
	}
}

static void say_progress(struct record *r)
{
	struct strbuf counts cleanup_strbuf = STRBUF_INIT;
	double elapsed = max_of(r, "elapsed_s");
	int64_t now = clock_boot_ns();
	char store[32], left[64] = "";
	int full = r->asked_s > 0 ? (int)(BAR * elapsed / r->asked_s) : 0;

	if (!r->said_ns)
		r->said_ns = now;
	if (r->call->quiet || (!r->tty && now - r->said_ns < PLAIN_EVERY_NS))
		return;
	r->said_ns = now;
	add_counts(r, 'p', &counts);
	term_bytes((uint64_t)max_of(r, "store_bytes"), store, sizeof(store));
	if (r->tty) {
		fputs("\r ", stderr);
		for (int i = 0; i < BAR && r->asked_s > 0; i++)
			fputs(i < full ? "█" : "░", stderr);
	}
	if (r->asked_s > 0)
		snprintf(left, sizeof(left), "%.1f/%.0f s", elapsed, r->asked_s);
	else
		snprintf(left, sizeof(left), "%.1f s (Ctrl-C ends)", elapsed);
	fprintf(stderr, " %s   %s   %.0f lost   own CPU %.1f %% of one core   store %s%s", left, strbuf_str(&counts),
		sum_of(r, 'p', "lost"), 100 * sum_of(r, 'p', "self_cores"), store, r->tty ? "\033[K" : "\n");
}

static void say_ready(const struct record *r, const struct loader *l, const json_t *ev)
{
	const char *clock = json_string_value(json_object_get(ev, "clock")) ?: "?";

	fprintf(stderr, "%srecording %s", r->tty && r->said_ns ? "\r\033[K" : "", l->family->name);
	if (num(ev, "hz") > 0)
		fprintf(stderr, " at %.0f Hz", num(ev, "hz"));
	fprintf(stderr, " (%s) → %s\n", clock, r->call->store);
}

/* One of several fails: the others go on, so it is said at once. */
static void say_failed(const struct record *r, const struct loader *l)
{
	const char *what = json_string_value(json_object_get(l->error, "what"));

	fprintf(stderr, "%ssonde: %s is not recorded: %s\n", r->tty ? "\r\033[K" : "", l->family->name, what ? what : "it failed");
}

static void on_event(void *ctx, struct loader *l, const char *name, const json_t *ev)
{
	struct record *r = ctx;

	if (!strcmp(name, "ready") && !r->call->quiet)
		say_ready(r, l, ev);
	else if (!strcmp(name, "progress"))
		say_progress(r);
	else if (!strcmp(name, "exit"))
		r->command_status = (int)num(ev, "status");
	else if (!strcmp(name, "error") && r->loaders.n > 1)
		say_failed(r, l);
}

/* --- the end --- */

static bool is_plain_word(const char *s)
{
	return s[0] && s[0] != '-' && !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
}

static void say_next(const struct record *r, const char *hottest)
{
	struct strbuf where cleanup_strbuf = STRBUF_INIT;
	const char *w;

	if (r->rec && !r->newest)
		strbuf_addf(&where, " --rec %lld", (long long)r->rec);
	if (strcmp(r->call->store, store_default_dir()))
		strbuf_addf(&where, " --store %s", r->call->store);
	w = strbuf_str(&where);
	fprintf(stderr, "next:  sonde flame%s      sonde stacks%s -n 10", w, w);
	if (hottest && is_plain_word(hottest))
		fprintf(stderr, "      sonde flame %s%s", hottest, w);
	fputc('\n', stderr);
}

/* The first loader that came to its end; NULL: none. */
static const struct loader *first_done(const struct record *r)
{
	for (size_t i = 0; i < r->loaders.n; i++)
		if (r->loaders.v[i].done)
			return &r->loaders.v[i];
	return NULL;
}

/* Which recording of the store this was: a loader knows its row in its last segment. */
static void find_recording(struct record *r)
{
	const json_t *done = first_done(r)->done;
	const char *segment = json_string_value(json_object_get(done, "segment")) ?: "";
	const char *name = strrchr(segment, '/') ? strrchr(segment, '/') + 1 : segment;
	int64_t run = json_integer_value(json_object_get(done, "run"));
	struct select_recording *list = NULL;
	size_t n = 0;

	if (select_recordings(r->call->store, &list, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < list[i].n_runs; k++) {
			const char *path = list[i].runs[k].segment;
			const char *slash = strrchr(path, '/');

			if (list[i].runs[k].run != run || strcmp(slash ? slash + 1 : path, name))
				continue;
			r->rec = list[i].number;
			r->newest = i + 1 == n;
			r->from_ns = list[i].from_ns;
			r->to_ns = list[i].to_ns;
		}
	}
	select_recordings_free(list, n);
}

static double lost_total(const struct record *r)
{
	const char *reason;
	double lost = 0;
	json_t *n;

	for (size_t i = 0; i < r->loaders.n; i++)
		json_object_foreach(json_object_get(r->loaders.v[i].done, "lost"), reason, n)
			lost += json_number_value(n);
	return lost;
}

/* "3 processes", of the family that saw most */
static double processes_of(const struct record *r)
{
	double most = 0;

	for (size_t i = 0; i < r->loaders.n; i++)
		most = num(r->loaders.v[i].done, "processes") > most ? num(r->loaders.v[i].done, "processes") : most;
	return most;
}

static void say_sums(const struct record *r, const char *rec)
{
	double frames = sum_of(r, 'd', "frames"), user = sum_of(r, 'd', "user_samples");
	const struct loader *l = first_done(r);
	struct strbuf counts cleanup_strbuf = STRBUF_INIT;

	add_counts(r, 'd', &counts);
	fprintf(stderr, "%s%s done: %s of %.0f process%s in %.1f s; %.0f lost; %.1f %% of frames named, %.1f %% of "
			"user stacks complete; own CPU %.1f %% of one core\n",
		r->rec ? "rec " : "recording", r->rec ? rec : "", strbuf_str(&counts), processes_of(r),
		processes_of(r) == 1 ? "" : "es", num(l->done, "to") - num(l->done, "from"), lost_total(r),
		frames > 0 ? 100 * sum_of(r, 'd', "frames_named") / frames : 100,
		user > 0 ? 100 * sum_of(r, 'd', "user_complete") / user : 100, 100 * sum_of(r, 'd', "self_cores"));
}

static void say_done(struct record *r)
{
	const struct fold_opts opts = {.kind = STORE_KIND_CPU, .leaves = true};
	const char *hottest = NULL;
	struct selection *sel = NULL;
	struct select_args args = {0};
	struct fold *f = NULL;
	char rec[32];

	snprintf(rec, sizeof(rec), "%lld", (long long)r->rec);
	args.rec = rec;
	say_sums(r, rec);
	if (r->rec && !select_new(&args, r->call->store, NULL, 0, true, &sel, NULL) && !fold_make(sel, &opts, &f, NULL))
		hottest = hottest_print(f, stderr);
	say_next(r, hottest);
	fold_free(f);
	select_free(sel);
}

static json_t *row_json(const struct record *r, const struct loader *l)
{
	static const char *const kept[] = {"run", "segment", "samples", "seen", "lost", "processes", "frames",
					   "frames_named", "user_samples", "user_complete", "self_cores"};
	json_t *row = json_object();

	json_object_set_new(row, "family", json_string(l->family->name));
	json_object_set_new(row, "rec", r->rec ? json_integer(r->rec) : json_null());
	json_set_time(row, "from", r->from_ns);
	json_set_time(row, "to", r->to_ns);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		json_t *v = json_object_get(l->done, kept[i]);

		json_object_set_new(row, kept[i], v ? json_incref(v) : json_null());
	}
	json_object_set_new(row, "first_sample_seconds", json_real(num(l->done, "first_s")));
	json_object_set_new(row, "command_status", r->command_status >= 0 ? json_integer(r->command_status) : json_null());
	return row;
}

static int print_json(struct record *r)
{
	json_t *envelope = json_envelope("record", r->from_ns, r->to_ns);

	for (size_t i = 0; i < r->loaders.n; i++) {
		const struct loader *l = &r->loaders.v[i];

		if (l->done)
			json_array_append_new(json_rows(envelope), row_json(r, l));
		else
			json_warn(envelope, "%s was not recorded: %s", l->family->name,
				  json_string_value(json_object_get(l->error, "what")) ?: "its loader ended without a result");
	}
	if (lost_total(r) > 0)
		json_warn(envelope, "%.0f samples were lost", lost_total(r));
	return json_print(envelope, stdout, 0);
}

static int from_error_event(const struct loader *l, struct err *e)
{
	const char *what = json_string_value(json_object_get(l->error, "what"));
	const char *fix = json_string_value(json_object_get(l->error, "fix"));
	char own[64];

	err_set(e, -EIO, (enum sonde_exit)num(l->error, "exit"), "%s", what ? what : "the recorder failed");
	/* the loader names itself; nobody types it */
	snprintf(own, sizeof(own), "sudo sonde-%s ...", l->family->name);
	if (fix && !strcmp(fix, own))
		fix = "sudo sonde record ...";
	if (fix && *fix)
		err_fix(e, "%s", fix);
	return -EIO;
}

/* What became of a loader, and of the command that it ran. */
static int conclude(const struct loader *l, struct err *e)
{
	if (WIFSIGNALED(l->status)) {
		err_set(e, -EIO, EXIT_RUNTIME, "the recorder of %s was ended by signal %d (%s); what it had stored is kept",
			l->family->name, WTERMSIG(l->status), strsignal(WTERMSIG(l->status)));
		err_fix(e, "sonde status    sonde flame --rec last");
		return -EIO;
	}
	if (l->error)
		return from_error_event(l, e);
	if (l->done)
		return 0;
	if (WEXITSTATUS(l->status) == EXIT_INTERRUPTED)
		return err_set(e, -EINTR, EXIT_INTERRUPTED, "interrupted before any sample was stored");
	return err_set(e, -EIO, WEXITSTATUS(l->status) ? (enum sonde_exit)WEXITSTATUS(l->status) : EXIT_RUNTIME,
		       "the recorder of %s ended without a result (exit status %d)", l->family->name, WEXITSTATUS(l->status));
}

/* The first that failed decides; what the others have is kept and told. 0: none failed. */
static int conclude_all(const struct record *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->loaders.n && !rc; i++)
		rc = conclude(&r->loaders.v[i], e);
	return rc;
}

static bool interrupted(const struct record *r)
{
	bool all = true;

	for (size_t i = 0; i < r->loaders.n; i++)
		all = all && WEXITSTATUS(r->loaders.v[i].status) == EXIT_INTERRUPTED;
	return all;
}

/* Nothing ran on a CPU: said as such, with what to do. The command's own failure goes before. */
static int say_nothing(const struct record *r, struct err *e)
{
	const json_t *done = first_done(r)->done;
	double seconds = num(done, "to") - num(done, "from");

	if (interrupted(r))
		return err_set(e, -EINTR, EXIT_INTERRUPTED, "interrupted before any sample was stored");
	if (r->loaders.n == 1 && !strcmp(r->loaders.v[0].family->name, "cpu"))
		err_set(e, -ENODATA, EXIT_NOTHING, "no samples: nothing that was asked for ran on a CPU in %.1f s", seconds);
	else
		err_set(e, -ENODATA, EXIT_NOTHING, "nothing of what was asked for happened in %.1f s", seconds);
	err_fix(e, "record for longer (-d 30s), oftener (-F 999), or without a filter: sudo sonde record -d 10s");
	return -ENODATA;
}

static int tell(struct record *r, struct err *e)
{
	struct verb_call *call = (struct verb_call *)r->call;
	int failed = conclude_all(r, e), rc = 0;

	if (!first_done(r) || (failed && r->loaders.n == 1))
		return failed;
	find_recording(r);
	call->status = r->loaders.n == 1 ? WEXITSTATUS(r->loaders.v[0].status) : EXIT_OK;
	if (r->command_status > 0) {
		fprintf(stderr, "sonde: the command failed: exit status %d\n", r->command_status);
		call->status = EXIT_RUNTIME;
	} else if (sum_of(r, 'd', "samples") == 0) {
		return failed ? failed : say_nothing(r, e);
	}
	if (call->json)
		rc = print_json(r);
	else if (!call->quiet && sum_of(r, 'd', "samples") > 0)
		say_done(r);
	return failed ? failed : rc;
}

/* --- the beginning --- */

static int check_args(const struct verb_call *call, size_t n_families, struct err *e)
{
	const struct record_args *o = call->args;

	if (call->n_before_dashes) {
		err_set(e, -EINVAL, EXIT_USAGE, "record takes no word before `--`: %s", call->words[0]);
		err_fix(e, "sonde record -- %s ...    or    sonde record --container %s", call->words[0], call->words[0]);
		return -EINVAL;
	}
	if (call->n_words && n_families > 1) {
		err_set(e, -EINVAL, EXIT_USAGE, "a command is recorded by one family at a time: each loader would start its own");
		err_fix(e, "start it apart, then sudo sonde record --families %s --pid PID", o->families);
		return -EINVAL;
	}
	if (o->freq > FREQ_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--freq takes 1 to %d, not %llu", FREQ_MAX, (unsigned long long)o->freq);
	return 0;
}

static uint64_t new_token(void)
{
	uint64_t token = 0;

	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		token = (uint64_t)clock_boot_ns() * 0x9e3779b97f4a7c15ull + (uint64_t)getpid();
	return (token >> 2) | 1;
}

/* All or none. */
static int start_all(struct record *r, const struct probe_family *const *families, size_t n, struct err *e)
{
	char path[PATH_MAX], program[64];
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		snprintf(program, sizeof(program), "sonde-%s", families[i]->name);
		rc = helper_find(program, path, e);
	}
	if (rc)
		return rc;
	r->token = n > 1 ? new_token() : 0;
	loaderset_catch_signals();
	for (size_t i = 0; i < n && !rc; i++)
		rc = loaderset_start(&r->loaders, families[i], fill_argv, r, e);
	if (rc)
		loaderset_stop(&r->loaders);
	return rc;
}

static int record_run(struct verb_call *call, struct err *e)
{
	const struct record_args *o = call->args;
	struct record r = {.call = call, .command_status = -1, .tty = term_is_tty(stderr), .loaders = {.event = on_event}};
	const struct probe_family *families[FAMILIES_MAX];
	struct err asked = {0};
	size_t n = 0;
	int rc = families_of(o->families, families, &n, e);

	r.loaders.ctx = &r;
	r.asked_s = (double)o->duration_ns / 1e9;
	if (!rc)
		rc = check_args(call, n, e);
	if (!rc && o->debuginfod)
		rc = symbolize_check(e);
	if (!rc)
		rc = start_all(&r, families, n, e);
	if (!rc) {
		loaderset_follow(&r.loaders);
		if (r.tty && !call->quiet)
			fputs("\r\033[K", stderr);
		if (o->debuginfod && sum_of(&r, 'd', "samples") > 0 && symbolize_quietly(call->store, &asked))
			err_report(&asked, "sonde");
		rc = tell(&r, e);
	}
	loaderset_release(&r.loaders);
	return rc;
}

static const struct option OPTIONS[] = {
	{.name = "duration", .letter = 'd', .type = OPTION_DURATION, .arg = "TIME",
	 .help = "how long: 10s, 5m (default: until Ctrl-C, or the command ends)",
	 .offset = offsetof(struct record_args, duration_ns)},
	{.name = "families", .type = OPTION_STRING, .arg = "LIST", .help = "what to record: cpu, offcpu, goheap, with commas "
	 "(default cpu)", .offset = offsetof(struct record_args, families)},
	{.name = "freq", .letter = 'F', .type = OPTION_UINT, .arg = "HZ", .help = "samples a second and CPU, 1 to 4999 "
	 "(default 99)", .offset = offsetof(struct record_args, freq)},
	{.name = "pid", .letter = 'p', .type = OPTION_LIST, .arg = "PID", .help = "only this process (repeatable)",
	 .offset = offsetof(struct record_args, pid)},
	{.name = "container", .type = OPTION_LIST, .arg = "NAME", .help = "only this container, by name or id",
	 .offset = offsetof(struct record_args, container)},
	{.name = "cgroup", .type = OPTION_LIST, .arg = "PATH", .help = "only this cgroup and those below it",
	 .offset = offsetof(struct record_args, cgroup)},
	{.name = "comm", .type = OPTION_LIST, .arg = "NAME", .help = "only threads of this name",
	 .offset = offsetof(struct record_args, comm)},
	{.name = "args", .type = OPTION_STRING, .arg = "HOW", .help = "keep command lines: full, masked (default), none",
	 .offset = offsetof(struct record_args, args)},
	{.name = "no-lines", .type = OPTION_FLAG, .help = "functions alone: no source lines, no inlined functions",
	 .offset = offsetof(struct record_args, no_lines)},
	{.name = "debuginfod", .type = OPTION_FLAG,
	 .help = "then ask the servers in $DEBUGINFOD_URLS for what has no lines", .offset = offsetof(struct record_args, debuginfod)},
	{0},
};

static const char *const EXAMPLES[] = {
	"sudo sonde record -d 10s",
	"sudo sonde record -d 30s --container web",
	"sudo sonde record -F 499 -- make -j2",
	"sudo sonde record --families cpu,offcpu -d 10s",
	NULL,
};

const struct verb verb_record = {
	.name = "record",
	.summary = "record where the CPU time goes, into the store",
	.usage = "[-d TIME] [-- COMMAND...]",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct record_args),
	.uses = VERB_STORE | VERB_JSON | VERB_WORDS,
	.run = record_run,
};
