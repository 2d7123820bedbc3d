/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family: the program around a capture: command line, checks, target, the capture, the summary at
 * the end.
 */
#include "loaders/lib/bpf/family.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loaders/lib/bpf/run/capture.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/command.h"
#include "loaders/lib/bpf/load/cpulist.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/start/options.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/bpf/run/progress.h"
#include "loaders/lib/bpf/run/scripts.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/proc/args.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/families/families.h"
#include "schema/base/log.h"
#include "schema/base/strbuf.h"

struct session {
	const struct family *family;
	char prog[32];
	struct options options;
	struct strbuf command_line;
	struct command command;
	struct target target;
	struct progress progress;
	struct capture_report report;
	int signal_fd;
	int64_t begin_ns;
	char lacks[512];       /* rights that are missing; "": none */
	const char *lacks_fix; /* what helps then */
};

/* The command line as it may be stored: secrets in it are masked. */
static void command_line_make(struct session *s, int argc, char **argv)
{
	cleanup_strbuf struct strbuf raw = STRBUF_INIT;
	enum args_policy policy = ARGS_MASKED;

	args_policy_parse(s->options.args, &policy);
	for (int i = 0; i < argc; i++)
		strbuf_add(&raw, argv[i], strlen(argv[i]) + 1);
	args_format(raw.buf, raw.len, policy, &s->command_line);
}

/* by the loader, in a copy of the stack */
#define FOUND_LATER \
	"HotSpot 8 and later, V8 as in Node 16, 18, 20, 22, 24 and 26, Erlang and Elixir of OTP 24 and later"

static void check_scripts(struct check *c, const struct family *f, const struct bpf_object *obj)
{
	uint32_t kinds;

	if (!scripts_configured(obj, &kinds))
		return;
	if (f->no_scripts)
		check_add(c, "script frames", CHECK_OFF, NULL,
			  FOUND_LATER "; CPython, PHP, Ruby and Perl show as their interpreter's "
				      "own functions in the stacks of this family");
	else if (kinds == SCRIPTS_KINDS[0])
		check_add(
			c, "script frames", CHECK_OK, NULL,
			"CPython 2.7 and 3.6 to 3.15, PHP 7.4 to 8.6, Ruby 2.7, 3.1, 3.3, 3.4 and 4.0, Perl 5.32 to 5.42, " FOUND_LATER);
	else if (kinds)
		check_add(c, "script frames", CHECK_WARN, "a newer kernel",
			  "CPython 2.7 and 3.6 to 3.15, " FOUND_LATER "; this kernel refuses the "
			  "program that walks those of PHP, Ruby and Perl, too");
	else
		check_add(c, "script frames", CHECK_WARN, "a newer kernel",
			  FOUND_LATER "; this kernel refuses the program that walks others: "
				      "they show as their interpreter's own functions");
}

/* Attaches as a capture does; a family that also works without programs (`rights`) changes more
 * than the kernel when it attaches, and is only opened. */
static void check_programs(struct check *c, const struct family *f, const struct family_config *fc)
{
	bool attaches = f->attach && !f->rights;
	struct bpf_object *obj;
	struct err e = {0};
	void *state;
	int err;

	if (f->open(fc, &state, &obj, &e)) {
		check_add_err(c, "programs", &e);
		return;
	}
	check_scripts(c, f, obj);
	err = attaches ? f->attach(state, &e) : 0;
	if (attaches && !err && f->detach)
		f->detach(state);
	f->close(state);
	if (err)
		check_add_err(c, "programs", &e);
	else
		check_add(c, "programs", CHECK_OK, NULL, "loaded%s and unloaded",
			  attaches ? ", attached" : "");
	leftout_check(c);
}

static int check_run(struct session *s)
{
	struct family_target everything = {0};
	struct family_config fc = {.target = &everything,
				   .freq = s->options.freq,
				   .cpus = 1,
				   .ring_bytes = 256u << 10,
				   .late_bytes = 256u << 10};
	struct check c = {0};
	int code;

	load_init(s->options.verbose);
	preflight_check(&c, s->prog, s->options.store, !s->family->rights);
	if (s->family->check)
		s->family->check(&c, s->options.freq);
	if (preflight(s->prog, NULL))
		check_add(&c, "programs", CHECK_OFF, NULL, "not tried");
	else
		check_programs(&c, s->family, &fc);
	if (s->options.json)
		check_print_json(&c, s->family->name, stdout);
	else
		check_print(&c, stdout);
	code = c.exit;
	check_release(&c);
	return code;
}

/* From here on these signals are read, not delivered. */
static int signals_open(struct session *s, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* RLIMIT_FSIZE: a write that fails says so */
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot take signals: %s", strerror(errno));
	return 0;
}

static int capture_do(struct session *s, struct err *e)
{
	struct capture_opts co = {
		.family = s->family,
		.options = &s->options,
		.command_line = strbuf_str(&s->command_line),
		.target = &s->target,
		.command = &s->command,
		.progress = &s->progress,
		.begin_ns = s->begin_ns,
	};
	int err = s->family->rights ? s->family->rights(s->prog, e) : preflight(s->prog, e);

	if (!err)
		err = preflight_limits(e);
	if (!err && s->family->needs)
		err = s->family->needs(e);
	if (!err &&
	    preflight_lacks(s->family->ring_fd != NULL, s->lacks, sizeof(s->lacks), &s->lacks_fix))
		log_warn("%s", s->lacks);
	if (!err && s->options.command)
		err = command_start(&s->command, s->options.command, e);
	if (!err)
		err = target_resolve(&s->target, &s->options, s->command.pid, e);
	if (!err)
		err = signals_open(s, e);
	if (err)
		return err;
	load_init(s->options.verbose);
	co.signal_fd = s->signal_fd;
	return capture_run(&co, &s->report, e);
}

static json_t *lost_json(const struct capture_report *r)
{
	json_t *lost = json_object();

	for (int i = 0; i < CAPTURE_LOST_N; i++)
		json_object_set_new(lost, capture_loss_names[i],
				    json_integer((json_int_t)r->lost[i]));
	return lost;
}

static void send_done(struct session *s)
{
	const struct capture_report *r = &s->report;
	json_t *line =
		json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I}", "event",
			  "done", "run", (json_int_t)r->run, "segment", r->segment, "samples",
			  (json_int_t)r->stored, "seen", (json_int_t)r->seen, "lost_total",
			  (json_int_t)capture_lost(r), "lost", lost_json(r), "maps_lost",
			  (json_int_t)r->maps_lost, "frames", (json_int_t)r->frames, "frames_named",
			  (json_int_t)r->frames_named, "processes", (json_int_t)r->processes);

	json_object_set_new(line, "user_samples", json_integer((json_int_t)r->user));
	json_object_set_new(line, "user_complete", json_integer((json_int_t)r->user_complete));
	json_object_set_new(line, "from", json_real((double)r->from_ns / 1e9));
	json_object_set_new(line, "to", json_real((double)r->to_ns / 1e9));
	json_object_set_new(line, "took_s", json_real((double)r->took_ns / 1e9));
	json_object_set_new(line, "self_cores", json_real(r->self_cores));
	json_object_set_new(line, "edges_cpu_s", json_real(r->edges_cpu_s));
	json_object_set_new(line, "first_s", r->first_s < 0 ? json_null() : json_real(r->first_s));
	json_object_set_new(line, "stale", json_integer((json_int_t)r->stale));
	if (*s->lacks) {
		json_object_set_new(line, "lacks", json_string(s->lacks));
		json_object_set_new(line, "lacks_fix", json_string(s->lacks_fix));
	}
	json_object_set_new(line, "unsure", json_integer((json_int_t)r->unsure));
	json_object_set_new(line, "unfollowed", json_integer((json_int_t)r->unfollowed));
	json_object_set_new(line, "probe_ns", json_integer((json_int_t)r->run_ns));
	json_object_set_new(line, "probe_p99_ns", json_integer((json_int_t)r->run_p99_ns));
	progress_send(&s->progress, line, true);
}

static void print_done(const struct session *s)
{
	const struct capture_report *r = &s->report;
	const struct probe_family *f = family_named(s->family->name);
	double named = r->frames ? 100.0 * (double)r->frames_named / (double)r->frames : 0;

	double complete = r->user ? 100.0 * (double)r->user_complete / (double)r->user : 0;

	fprintf(stderr, "%s: %llu %ss of %llu processes in %.1f s, %llu lost; ", s->prog,
		(unsigned long long)r->stored, r->frames || !f ? "sample" : f->event,
		(unsigned long long)r->processes, (double)r->took_ns / 1e9,
		(unsigned long long)capture_lost(r));
	if (r->frames)
		fprintf(stderr, "%.1f %% of frames named, %.1f %% of user stacks complete; ", named,
			complete);
	fprintf(stderr, "own CPU %.1f %% of one core, and %.2f s to start and end\n",
		100 * r->self_cores, r->edges_cpu_s);
	for (int i = 0; i < CAPTURE_LOST_N; i++)
		if (r->lost[i])
			fprintf(stderr, "  lost %-10s %llu\n", capture_loss_names[i],
				(unsigned long long)r->lost[i]);
	if (r->unsure)
		fprintf(stderr,
			"  of the stored ones %llu may be missing: the disk failed before they were on it\n",
			(unsigned long long)r->unsure);
	if (r->unfollowed)
		fprintf(stderr, "  %llu child processes were too many to follow\n",
			(unsigned long long)r->unfollowed);
	fprintf(stderr, "  run %lld in %s\n", (long long)r->run, r->segment);
}

/* To the parent that gave us a descriptor, or to a person. */
static int report_error(struct session *s, const struct err *e)
{
	int code = e->exit ? e->exit : EXIT_RUNTIME;

	if (s->progress.fd < 0)
		return err_report(e, s->prog);
	progress_send(&s->progress,
		      json_pack("{s:s, s:s, s:s, s:i}", "event", "error", "what", e->what, "fix",
				e->fix, "exit", code),
		      true);
	return code;
}

static int session_report(struct session *s, int err, const struct err *e)
{
	const struct capture_report *r = &s->report;

	if (r->from_ns) {
		send_done(s);
		if (s->progress.fd < 0)
			print_done(s);
	}
	if (err)
		return report_error(s, e);
	if (r->stored)
		return EXIT_OK;
	return r->interrupted ? EXIT_INTERRUPTED : EXIT_NOTHING;
}

static int session_run(struct session *s, int argc, char **argv)
{
	struct err e = {0};
	int err = loader_options_read(s->family, s->prog, argc, argv, &s->options, &e);

	if (err)
		return program_end(s->prog, err, &e);
	log_init(s->prog, s->options.verbose ? LOG_LEVEL_INFO : LOG_LEVEL_WARN);
	if (s->options.check)
		return check_run(s);
	progress_init(&s->progress, s->options.progress_fd);
	command_line_make(s, argc, argv);
	err = capture_do(s, &e);
	return session_report(s, err, &e);
}

int family_main(const struct family *f, int argc, char **argv)
{
	struct session s = {.family = f,
			    .command = COMMAND_NONE,
			    .progress = {.fd = -1},
			    .signal_fd = -1,
			    .begin_ns = clock_boot_ns()};
	int code;

	snprintf(s.prog, sizeof(s.prog), "sonde-%s", f->name);
	code = session_run(&s, argc, argv);
	loader_options_release(f, &s.options);
	command_close(&s.command);
	target_release(&s.target);
	strbuf_release(&s.command_line);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	return code;
}
