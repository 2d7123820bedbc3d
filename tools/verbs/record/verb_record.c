/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: a recording in the foreground. The loaders do the work, one for each family (loaderset);
 * this file shows their progress and, at the end, the hottest functions and the next commands to
 * try.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/cli/escapes.h"
#include "schema/base/clock.h"
#include "schema/base/limits/memlimit.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/probespec/spec.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/print/term.h"
#include "tools/record/mapshare.h"
#include "tools/record/record.h"
#include "tools/record/symbolize.h"

#define BAR            20
#define PLAIN_EVERY_NS (10 * NSEC_PER_SEC)
#define FREQ_MAX       4999
#define FINISH_NS      (10 * NSEC_PER_SEC)
#define PROBE_FAMILY   "probe" /* the one that takes --probe */

struct record_args {
	int64_t duration_ns, finish_ns;
	uint64_t freq;
	struct option_list pid, container, cgroup, comm, probe;
	const char *args, *families, *mode;
	uint64_t rate;
	bool debuginfod;
	bool no_lines;
	bool pages;
	const char *java_tls;
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

	if (o->duration_ns && !r->loaders.length_ns)
		argv_addf(a, "--duration", o->duration_ns / 1000000, "ms");
	if (o->freq && f->has_freq)
		argv_addf(a, "--freq", (long long)o->freq, "");
	if (o->mode && f->has_mode) {
		argv_add(a, "--mode");
		argv_add(a, o->mode);
	}
	if (o->rate && f->has_mode)
		argv_addf(a, "--rate", (long long)o->rate, "");
	if (o->pages && f->has_pages) {
		argv_add(a, "--pages");
		argv_add(a, "on");
	}
	if (o->java_tls && f->has_tls) {
		argv_add(a, "--tls");
		argv_add(a, o->java_tls);
	}
	if (!strcmp(f->name, PROBE_FAMILY))
		argv_add_list(a, "--probe", &o->probe);
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
	argv_add(a, "--apart");
	argv_addf(a, "--finish", (o->finish_ns ? o->finish_ns : FINISH_NS) / 1000000, "ms");
	if (r->maps.pid) {
		argv_add(a, "--maps-socket");
		argv_add(a, r->maps.socket);
	}
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

/* The maximum over the loaders, for values that they share. */
static double max_of(const struct record *r, const char *key)
{
	double max = 0;

	for (size_t i = 0; i < r->loaders.n; i++)
		max = record_num(r->loaders.v[i].progress, key) > max ?
			      record_num(r->loaders.v[i].progress, key) :
			      max;
	return max;
}

/* With several loaders and a duration: since the last one was ready. */
static double elapsed_s(const struct record *r)
{
	double left = (double)(r->loaders.end_ns - clock_boot_ns()) / 1e9;

	if (!r->loaders.length_ns)
		return max_of(r, "elapsed_s");
	return !r->loaders.end_ns ? 0 : left > 0 ? r->asked_s - left : r->asked_s;
}

/* What the store does not take at the moment: it may still be stored, or be lost. */
static void say_waiting(const struct record *r)
{
	for (size_t i = 0; i < r->loaders.n; i++) {
		const json_t *p = r->loaders.v[i].progress;
		const char *error = json_string_value(json_object_get(p, "store_error"));

		if (!error)
			continue;
		fprintf(stderr, " takes nothing (%s): %.0f wait", error,
			record_sum(r, 'p', "waiting"));
		return;
	}
}

static void say_progress(struct record *r)
{
	struct strbuf counts cleanup_strbuf = STRBUF_INIT;
	double elapsed = elapsed_s(r);
	int64_t now = clock_boot_ns();
	char store[32], lost[UNITS_MAX], left[64] = "";
	int full = r->asked_s > 0 ? (int)(BAR * elapsed / r->asked_s) : 0;

	if (!r->said_ns)
		r->said_ns = now;
	if (r->call->quiet || (!r->tty && now - r->said_ns < PLAIN_EVERY_NS))
		return;
	r->said_ns = now;
	record_counts(r, 'p', &counts);
	units_bytes((uint64_t)max_of(r, "store_bytes"), store, sizeof(store));
	if (r->tty) {
		fputs("\r ", stderr);
		for (int i = 0; i < BAR && r->asked_s > 0; i++)
			fputs(i < full ? "█" : "░", stderr);
	}
	if (r->asked_s > 0)
		snprintf(left, sizeof(left), "%.1f/%.0f s", elapsed, r->asked_s);
	else
		snprintf(left, sizeof(left), "%.1f s (Ctrl-C stops)", elapsed);
	fprintf(stderr, " %s   %s   %s lost   own CPU %.1f %% of one core   store %s", left,
		strbuf_str(&counts),
		units_count((uint64_t)record_sum(r, 'p', "lost"), lost, sizeof(lost)),
		100 * record_sum(r, 'p', "self_cores"), store);
	say_waiting(r);
	fputs(r->tty ? "\033[K" : "\n", stderr);
}

/* It has stopped, and waits for files that are still being read. */
static void say_finish(struct record *r, const json_t *ev)
{
	double files = record_num(ev, "files");
	int64_t now = clock_boot_ns();

	if (r->call->quiet || files <= 0 || (!r->tty && now - r->finish_said_ns < PLAIN_EVERY_NS))
		return;
	r->finish_said_ns = now;
	fprintf(stderr,
		"%s recorded; %.0f file%s of the samples still being read, %.0f s at most (Ctrl-C ends the wait)%s",
		r->tty ? "\r" : "", files, files == 1 ? " is" : "s are", record_num(ev, "left_s"),
		r->tty ? "\033[K" : "\n");
}

static void say_ready(const struct record *r, const struct loader *l, const json_t *ev)
{
	const char *clock = json_string_value(json_object_get(ev, "clock")) ?: "?";

	fprintf(stderr, "%srecording %s", r->tty && r->said_ns ? "\r\033[K" : "", l->family->name);
	if (record_num(ev, "hz") > 0)
		fprintf(stderr, " at %.0f Hz", record_num(ev, "hz"));
	fprintf(stderr, " (%s) → %s\n", clock, r->call->store);
}

/* If one of several loaders fails, the others go on, so the error is reported at once. */
static void say_failed(const struct record *r, const struct loader *l)
{
	const char *what = json_string_value(json_object_get(l->error, "what"));

	fprintf(stderr, "%ssonde: %s is not recorded: %s\n", r->tty ? "\r\033[K" : "",
		l->family->name, what ? what : "it failed");
}

static void on_event(void *ctx, struct loader *l, const char *name, const json_t *ev)
{
	struct record *r = ctx;

	if (!strcmp(name, "ready") && !r->call->quiet)
		say_ready(r, l, ev);
	else if (!strcmp(name, "progress"))
		say_progress(r);
	else if (!strcmp(name, "finish"))
		say_finish(r, ev);
	else if (!strcmp(name, "exit"))
		r->command_status = (int)record_num(ev, "status");
	else if (!strcmp(name, "error") && r->loaders.n > 1)
		say_failed(r, l);
}

/* --- the beginning --- */

static bool has_mode(const struct probe_family *const *families, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (families[i]->has_mode)
			return true;
	return false;
}

static bool has_pages(const struct probe_family *const *families, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (families[i]->has_pages)
			return true;
	return false;
}

/* The family that loads the agent, and the one that reads what it shows. */
static bool has_tls(const struct probe_family *const *families, size_t n)
{
	bool loads = false, reads = false;

	for (size_t i = 0; i < n; i++) {
		loads |= families[i]->has_tls;
		reads |= !strcmp(families[i]->name, "l7");
	}
	return loads && reads;
}

/* `record cpu offcpu`, as `up` takes them; *out: cpu,offcpu */
static bool all_families(const struct verb_call *call, struct strbuf *out)
{
	for (size_t i = 0; i < call->n_before_dashes; i++) {
		if (!family_named(call->words[i]))
			return false;
		strbuf_addf(out, "%s%s", i ? "," : "", call->words[i]);
	}
	return true;
}

/* --probe alone records nothing else, so that it takes a command, too. */
static int families_asked(const struct record_args *o, const struct probe_family **out, size_t *n,
			  struct err *e)
{
	struct strbuf list cleanup_strbuf = STRBUF_INIT;
	int rc = 0;

	for (size_t i = 0; !rc && i < o->probe.n; i++)
		rc = probespec_check(o->probe.items[i], e);
	if (rc)
		return rc;
	if (o->families)
		strbuf_addf(&list, "%s%s", o->families, o->probe.n ? "," PROBE_FAMILY : "");
	else if (o->probe.n)
		strbuf_addstr(&list, PROBE_FAMILY);
	rc = families_of(o->families || o->probe.n ? strbuf_str(&list) : NULL, out, n, e);
	for (size_t i = 0; !rc && i < *n; i++)
		if (!strcmp(out[i]->name, PROBE_FAMILY) && !o->probe.n) {
			err_set(e, -EINVAL, EXIT_USAGE, "family probe records what --probe names");
			err_fix(e, "sudo sonde record --probe exec    or see: sonde probes");
			rc = -EINVAL;
		}
	return rc;
}

static int check_args(const struct verb_call *call, const struct probe_family *const *families,
		      size_t n_families, struct err *e)
{
	const struct record_args *o = call->args;

	if ((o->mode || o->rate) && !has_mode(families, n_families)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--mode and --rate need family goheap, which --families does not list");
		err_fix(e, "sudo sonde record --families cpu,goheap --mode force -d 30s");
		return -EINVAL;
	}
	if (o->pages && !has_pages(families, n_families)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--pages needs family mem, which --families does not list");
		err_fix(e, "sudo sonde record --families mem --pages -d 1m");
		return -EINVAL;
	}
	if (o->java_tls && !has_tls(families, n_families)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--java-tls needs families java and l7, which --families does not list both");
		err_fix(e,
			"sudo sonde record --families java,l7 --java-tls on --container NAME -d 1m");
		return -EINVAL;
	}
	if (call->n_before_dashes) {
		struct strbuf list cleanup_strbuf = STRBUF_INIT;

		err_set(e, -EINVAL, EXIT_USAGE, "record takes no words before `--`: %s",
			call->words[0]);
		if (all_families(call, &list))
			err_fix(e, "sudo sonde record --families %s", strbuf_str(&list));
		else
			err_fix(e, "sonde record -- %s ...    or    sonde record --container %s",
				call->words[0], call->words[0]);
		return -EINVAL;
	}
	if (call->n_words && n_families > 1) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"several families cannot record a command: each would start its own copy");
		err_fix(e, "start it yourself, then: sudo sonde record --families %s --pid PID",
			o->families);
		return -EINVAL;
	}
	if (o->freq > FREQ_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--freq must be 1 to %d, not %llu", FREQ_MAX,
			       (unsigned long long)o->freq);
	if (o->args && strcmp(o->args, "full") && strcmp(o->args, "masked") &&
	    strcmp(o->args, "none"))
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--args must be full, masked or none, not '%.60s'", o->args);
	return 0;
}

static uint64_t new_token(void)
{
	uint64_t token = 0;

	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		token = (uint64_t)clock_boot_ns() * 0x9e3779b97f4a7c15ull + (uint64_t)getpid();
	return (token >> 2) | 1;
}

/* --- the end --- */

static bool has_standing(const struct probe_family *const *families, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (families[i]->standing)
			return true;
	return false;
}

/* Stores where threads wait at the end, in addition to what the loaders recorded. Not after a
 * command, because it has ended, and not with names or cgroups, because sonde-pstack cannot filter
 * by them. A failure is reported, and the recording stays. */
static int keep_standing(const struct record *r, struct err *e)
{
	const struct record_args *o = r->call->args;
	char path[PATH_MAX];
	struct argv a = {0};
	int rc;

	if (r->call->n_words || o->cgroup.n || o->comm.n)
		return 0;
	rc = sibling_find("sonde-pstack", path, e);
	if (rc)
		return rc;
	argv_add(&a, path);
	argv_add(&a, "--keep");
	argv_add(&a, "--store");
	argv_add(&a, r->call->store);
	argv_addf(&a, "--recording", (long long)r->token, "");
	argv_addf(&a, "--at", (long long)(record_most(r, "to") * 1e9), "");
	argv_add_list(&a, "--pid", &o->pid);
	argv_add_list(&a, "--container", &o->container);
	if (o->no_lines)
		argv_add(&a, "--no-lines");
	argv_add(&a, NULL);
	rc = loaderset_run_apart(a.v, e);
	argv_release(&a);
	return rc;
}

/* Starts all loaders or none. */
static int start_all(struct record *r, const struct probe_family *const *families, size_t n,
		     struct err *e)
{
	const struct record_args *o = r->call->args;
	char path[PATH_MAX], program[64];
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		snprintf(program, sizeof(program), "sonde-%s", families[i]->name);
		rc = sibling_find(program, path, e);
	}
	if (rc)
		return rc;
	r->token = n > 1 || has_standing(families, n) ? new_token() : 0;
	r->loaders.length_ns = n > 1 ? o->duration_ns : 0;
	if (n > 1)
		mapshare_start(&r->maps, r->call->store, o->args, o->no_lines);
	r->loaders.maps = &r->maps;
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
	struct record r = {.call = call,
			   .command_status = -1,
			   .tty = escapes_on(STDERR_FILENO),
			   .loaders = {.event = on_event},
			   .maps = {.fd = -1}};
	const struct probe_family *families[FAMILIES_MAX];
	struct err asked = {0};
	size_t n = 0;
	int rc = families_asked(o, families, &n, e);

	r.kills = memlimit_kills();
	r.loaders.ctx = &r;
	r.asked_s = (double)o->duration_ns / 1e9;
	if (!rc)
		rc = check_args(call, families, n, e);
	if (!rc && o->debuginfod)
		rc = symbolize_check(e);
	if (!rc)
		rc = start_all(&r, families, n, e);
	if (!rc) {
		loaderset_follow(&r.loaders);
		mapshare_end(&r.maps);
		if (r.tty && !call->quiet)
			fputs("\r\033[K", stderr);
		if (has_standing(families, n) && record_sum(&r, 'd', "samples") > 0 &&
		    keep_standing(&r, &asked))
			err_report(&asked, "sonde");
		if (o->debuginfod && record_sum(&r, 'd', "samples") > 0 &&
		    symbolize_quietly(call->store, &asked))
			err_report(&asked, "sonde");
		rc = record_tell(&r, e);
	}
	mapshare_end(&r.maps);
	loaderset_release(&r.loaders);
	return rc;
}

/* clang-format off */
static const struct option OPTIONS[] = {
	{.name = "duration", .letter = 'd', .type = OPTION_DURATION, .arg = "TIME",
	 .help = "how long to record: 10s, 5m (default: until Ctrl-C, or until the command ends)",
	 .offset = offsetof(struct record_args, duration_ns)},
	{.name = "finish", .type = OPTION_DURATION, .arg = "TIME", .help = "then wait up to this long for files that are still being read (default 10s)",
	 .offset = offsetof(struct record_args, finish_ns)},
	{.name = "families", .type = OPTION_STRING, .arg = "LIST", .help = "of cpu,offcpu,mem,goheap,host,disk,gpu,scrape,net,l7,probe,logs,java (default cpu)", .offset = offsetof(struct record_args, families)},
	{.name = "probe", .type = OPTION_LIST, .arg = "SPEC", .help = "record a tracepoint, system call or function (see sonde probes; repeatable)",
	 .offset = offsetof(struct record_args, probe)},
	{.name = "freq", .letter = 'F', .type = OPTION_UINT, .arg = "HZ", .help = "samples per second on each CPU, 1 to 4999 (default 99)", .offset = offsetof(struct record_args, freq)},
	{.name = "pid", .letter = 'p', .type = OPTION_LIST, .arg = "PID", .help = "only this process (repeatable)",
	 .offset = offsetof(struct record_args, pid)},
	{.name = "container", .type = OPTION_LIST, .arg = "NAME", .help = "only this container, by name or id",
	 .offset = offsetof(struct record_args, container)},
	{.name = "cgroup", .type = OPTION_LIST, .arg = "PATH", .help = "only this cgroup and those below it",
	 .offset = offsetof(struct record_args, cgroup)},
	{.name = "comm", .type = OPTION_LIST, .arg = "NAME", .help = "only threads of this name",
	 .offset = offsetof(struct record_args, comm)},
	{.name = "args", .type = OPTION_STRING, .arg = "HOW", .help = "how to store command lines: full, masked (default), none",
	 .offset = offsetof(struct record_args, args)},
	{.name = "no-lines", .type = OPTION_FLAG, .help = "store functions only: no source lines, no inlined functions",
	 .offset = offsetof(struct record_args, no_lines)},
	{.name = "mode", .type = OPTION_STRING, .arg = "MODE",
	 .help = "goheap: disabled, enabled (default: only read), force (--rate BYTES a sample)",
	 .offset = offsetof(struct record_args, mode)},
	{.name = "rate", .type = OPTION_UINT, .arg = "BYTES", /* the line of --mode names it */
	 .offset = offsetof(struct record_args, rate)},
	{.name = "pages", .type = OPTION_FLAG, .help = "mem: also all pages of the host that are in use, the kernel's too, by stack",
	 .offset = offsetof(struct record_args, pages)},
	{.name = "java-tls", .type = OPTION_WORD, .arg = "on|only", .help = "java with l7: load an agent that shows the requests inside Java's TLS",
	 .offset = offsetof(struct record_args, java_tls)},
	{.name = "debuginfod", .type = OPTION_FLAG,
	 .help = "afterwards, ask the servers in $DEBUGINFOD_URLS for missing debug information", .offset = offsetof(struct record_args, debuginfod)},
	{0},
};
/* clang-format on */

static const char *const EXAMPLES[] = {
	"sudo sonde record -F 499 -- make -j2",
	"sudo sonde record --families cpu,offcpu --container web -d 10s",
	NULL,
};

const struct verb verb_record = {
	.name = "record",
	.summary = "record CPU samples, or other families of data, into the store",
	.usage = "[-d TIME] [-- COMMAND...]",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct record_args),
	.uses = VERB_STORE | VERB_JSON | VERB_WORDS | VERB_WRITES,
	.run = record_run,
};
