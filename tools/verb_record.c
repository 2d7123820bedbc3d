/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: a capture in the foreground. The loader does the work; this follows its progress (JSON lines on a pipe),
 * passes Ctrl-C on, and at the end says who was hottest and what to type next.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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
	const char *args;
	bool debuginfod;
	bool no_lines;
};

struct record {
	const struct verb_call *call;
	pid_t loader;
	bool tty;
	int64_t said_ns;       /* when the last plain line was printed */
	double asked_s;        /* 0: endless */
	json_t *done, *error;  /* events kept, owned */
	int64_t rec;           /* number of the recording, 0: not known */
	bool newest;           /* none began later */
	int64_t from_ns, to_ns;
	int command_status;    /* as of wait(2), -1: no command, or it has not ended */
};

static volatile sig_atomic_t loader_pid;

/* A terminal sends Ctrl-C to the loader as well; what came from one process is passed on. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (loader_pid > 0 && info->si_code <= 0)
		kill(loader_pid, sig);
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* --- the loader's command line --- */

struct argv {
	char **v;
	size_t n, cap;
};

static void argv_add(struct argv *a, const char *s)
{
	mem_grow(a->v, a->n, a->cap);
	a->v[a->n++] = s ? mem_strdup(s) : NULL;
}

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

static void argv_release(struct argv *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
}

static void loader_argv(struct argv *a, const char *path, const struct verb_call *call, int fd)
{
	const struct record_args *o = call->args;

	argv_add(a, path);
	if (o->duration_ns)
		argv_addf(a, "--duration", o->duration_ns / 1000000, "ms");
	if (o->freq)
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
	argv_addf(a, "--progress-fd", fd, "");
	if (call->n_words) {
		argv_add(a, "--");
		for (size_t i = 0; i < call->n_words; i++)
			argv_add(a, call->words[i]);
	}
	argv_add(a, NULL);
}

/* --- progress --- */

static double num(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void say_progress(struct record *r, const json_t *ev)
{
	double elapsed = num(ev, "elapsed_s");
	int64_t now = clock_boot_ns();
	char samples[32], store[32], left[64] = "";
	int full = r->asked_s > 0 ? (int)(BAR * elapsed / r->asked_s) : 0;

	if (!r->said_ns)
		r->said_ns = now;
	if (r->call->quiet || (!r->tty && now - r->said_ns < PLAIN_EVERY_NS))
		return;
	r->said_ns = now;
	term_count((uint64_t)num(ev, "samples"), samples, sizeof(samples));
	term_bytes((uint64_t)num(ev, "store_bytes"), store, sizeof(store));
	if (r->tty) {
		fputs("\r ", stderr);
		for (int i = 0; i < BAR && r->asked_s > 0; i++)
			fputs(i < full ? "█" : "░", stderr);
	}
	if (r->asked_s > 0)
		snprintf(left, sizeof(left), "%.1f/%.0f s", elapsed, r->asked_s);
	else
		snprintf(left, sizeof(left), "%.1f s (Ctrl-C ends)", elapsed);
	fprintf(stderr, " %s   %s samples   %.0f lost   own CPU %.1f %% of one core   store %s%s", left, samples,
		num(ev, "lost"), 100 * num(ev, "self_cores"), store, r->tty ? "\033[K" : "\n");
}

static void on_event(struct record *r, json_t *ev)
{
	const char *name = json_string_value(json_object_get(ev, "event"));

	if (!name)
		return;
	if (!strcmp(name, "ready") && !r->call->quiet)
		fprintf(stderr, "recording cpu at %.0f Hz (%s) → %s\n", num(ev, "hz"),
			json_string_value(json_object_get(ev, "clock")) ?: "?", r->call->store);
	else if (!strcmp(name, "progress"))
		say_progress(r, ev);
	else if (!strcmp(name, "exit"))
		r->command_status = (int)num(ev, "status");
	else if (!strcmp(name, "done") && !r->done)
		r->done = json_incref(ev);
	else if (!strcmp(name, "error") && !r->error)
		r->error = json_incref(ev);
}

static void follow(struct record *r, int fd)
{
	cleanup_file FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t cap = 0;

	while (in && getline(&line, &cap, in) > 0) {
		json_t *ev = json_loads(line, 0, NULL);

		on_event(r, ev);
		json_decref(ev);
	}
	free(line);
	if (r->tty && !r->call->quiet)
		fputs("\r\033[K", stderr);
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

/* Which recording of the store this was: the loader knows its row in its last segment. */
static void find_recording(struct record *r)
{
	const char *segment = json_string_value(json_object_get(r->done, "segment")) ?: "";
	const char *name = strrchr(segment, '/') ? strrchr(segment, '/') + 1 : segment;
	int64_t run = json_integer_value(json_object_get(r->done, "run"));
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

	json_object_foreach(json_object_get(r->done, "lost"), reason, n)
		lost += json_number_value(n);
	return lost;
}

static void say_done(struct record *r)
{
	const struct fold_opts opts = {.leaves = true};
	double frames = num(r->done, "frames"), named = num(r->done, "frames_named");
	double user = num(r->done, "user_samples"), complete = num(r->done, "user_complete");
	const char *hottest = NULL;
	struct selection *sel = NULL;
	struct select_args args = {0};
	struct fold *f = NULL;
	char samples[32], rec[32];

	snprintf(rec, sizeof(rec), "%lld", (long long)r->rec);
	args.rec = rec;
	fprintf(stderr, "%s%s done: %s samples of %.0f process%s in %.1f s; %.0f lost; %.1f %% of frames named, %.1f %% of "
			"user stacks complete; own CPU %.1f %% of one core\n",
		r->rec ? "rec " : "recording", r->rec ? rec : "",
		term_count((uint64_t)num(r->done, "samples"), samples, sizeof(samples)), num(r->done, "processes"),
		num(r->done, "processes") == 1 ? "" : "es", num(r->done, "to") - num(r->done, "from"), lost_total(r),
		frames > 0 ? 100 * named / frames : 100, user > 0 ? 100 * complete / user : 100,
		100 * num(r->done, "self_cores"));
	if (r->rec && !select_new(&args, r->call->store, NULL, 0, true, &sel, NULL) && !fold_make(sel, &opts, &f, NULL))
		hottest = hottest_print(f, stderr);
	say_next(r, hottest);
	fold_free(f);
	select_free(sel);
}

static int print_json(struct record *r)
{
	static const char *const kept[] = {"run", "segment", "samples", "seen", "lost", "processes", "frames",
					   "frames_named", "user_samples", "user_complete", "self_cores"};
	json_t *envelope = json_envelope("record", r->from_ns, r->to_ns), *row = json_object();

	json_object_set_new(row, "rec", r->rec ? json_integer(r->rec) : json_null());
	json_set_time(row, "from", r->from_ns);
	json_set_time(row, "to", r->to_ns);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		json_t *v = json_object_get(r->done, kept[i]);

		json_object_set_new(row, kept[i], v ? json_incref(v) : json_null());
	}
	json_object_set_new(row, "first_sample_seconds", json_real(num(r->done, "first_s")));
	json_object_set_new(row, "command_status", r->command_status >= 0 ? json_integer(r->command_status) : json_null());
	if (lost_total(r) > 0)
		json_warn(envelope, "%.0f samples were lost", lost_total(r));
	json_array_append_new(json_rows(envelope), row);
	return json_print(envelope, stdout, 0);
}

static int from_error_event(const struct record *r, struct err *e)
{
	const char *what = json_string_value(json_object_get(r->error, "what"));
	const char *fix = json_string_value(json_object_get(r->error, "fix"));

	err_set(e, -EIO, (enum sonde_exit)num(r->error, "exit"), "%s", what ? what : "the recorder failed");
	/* the loader names itself; nobody types it */
	if (fix && !strcmp(fix, "sudo sonde-cpu ..."))
		fix = "sudo sonde record ...";
	if (fix && *fix)
		err_fix(e, "%s", fix);
	return -EIO;
}

/* What became of the loader, and of the command that it ran. */
static int conclude(struct record *r, int status, struct err *e)
{
	if (WIFSIGNALED(status)) {
		err_set(e, -EIO, EXIT_RUNTIME, "the recorder was ended by signal %d (%s); what it had stored is kept",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
		err_fix(e, "sonde status    sonde flame --rec last");
		return -EIO;
	}
	if (r->error)
		return from_error_event(r, e);
	if (r->done)
		return 0;
	if (WEXITSTATUS(status) == EXIT_INTERRUPTED)
		return err_set(e, -EINTR, EXIT_INTERRUPTED, "interrupted before any sample was stored");
	return err_set(e, -EIO, WEXITSTATUS(status) ? (enum sonde_exit)WEXITSTATUS(status) : EXIT_RUNTIME,
		       "the recorder ended without a result (exit status %d)", WEXITSTATUS(status));
}

/* Nothing ran on a CPU: said as such, with what to do. The command's own failure goes before. */
static int say_nothing(const struct record *r, int status, struct err *e)
{
	if (WEXITSTATUS(status) == EXIT_INTERRUPTED)
		return err_set(e, -EINTR, EXIT_INTERRUPTED, "interrupted before any sample was stored");
	err_set(e, -ENODATA, EXIT_NOTHING, "no samples: nothing that was asked for ran on a CPU in %.1f s",
		num(r->done, "to") - num(r->done, "from"));
	err_fix(e, "record for longer (-d 30s), oftener (-F 999), or without a filter: sudo sonde record -d 10s");
	return -ENODATA;
}

static int tell(struct record *r, int status, struct err *e)
{
	struct verb_call *call = (struct verb_call *)r->call;
	int rc = conclude(r, status, e);

	if (rc < 0)
		return rc;
	find_recording(r);
	call->status = WEXITSTATUS(status);
	if (r->command_status > 0) {
		fprintf(stderr, "sonde: the command failed: exit status %d\n", r->command_status);
		call->status = EXIT_RUNTIME;
	} else if (num(r->done, "samples") == 0) {
		return say_nothing(r, status, e);
	}
	if (call->json)
		return print_json(r);
	if (!call->quiet && num(r->done, "samples") > 0)
		say_done(r);
	return 0;
}

static int record_run(struct verb_call *call, struct err *e)
{
	const struct record_args *o = call->args;
	struct record r = {.call = call, .command_status = -1, .tty = term_is_tty(stderr)};
	struct argv argv = {0};
	char path[PATH_MAX];
	struct err asked = {0};
	int fds[2], rc, status = 0;

	if (call->n_before_dashes) {
		err_set(e, -EINVAL, EXIT_USAGE, "record takes no word before `--`: %s", call->words[0]);
		err_fix(e, "sonde record -- %s ...    or    sonde record --container %s", call->words[0], call->words[0]);
		return -EINVAL;
	}
	if (o->freq > FREQ_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--freq takes 1 to %d, not %llu", FREQ_MAX, (unsigned long long)o->freq);
	rc = helper_find("sonde-cpu", path, e);
	if (!rc && o->debuginfod)
		rc = symbolize_check(e);
	if (rc < 0)
		return rc;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	r.asked_s = (double)o->duration_ns / 1e9;
	loader_argv(&argv, path, call, fds[1]);
	catch_signals();
	rc = helper_start(argv.v, fds[1], &r.loader, e);
	close(fds[1]);
	argv_release(&argv);
	if (rc < 0) {
		close(fds[0]);
		return rc;
	}
	loader_pid = r.loader;
	follow(&r, fds[0]);
	while (waitpid(r.loader, &status, 0) < 0 && errno == EINTR)
		;
	loader_pid = 0;
	if (o->debuginfod && r.done && num(r.done, "samples") > 0 && symbolize_quietly(call->store, &asked))
		err_report(&asked, "sonde");
	rc = tell(&r, status, e);
	json_decref(r.done);
	json_decref(r.error);
	return rc;
}

static const struct option OPTIONS[] = {
	{.name = "duration", .letter = 'd', .type = OPTION_DURATION, .arg = "TIME",
	 .help = "how long: 10s, 5m (default: until Ctrl-C, or the command ends)",
	 .offset = offsetof(struct record_args, duration_ns)},
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
