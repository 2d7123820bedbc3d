/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: what this host can and cannot record, each item once, with the command that fixes it. The
 * loaders check their own requirements (`sonde-cpu --check --json`); this file adds the host and
 * the store.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/limits/memlimit.h"
#include "schema/base/mem.h"
#include "schema/families/families.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "schema/base/units.h"
#include "schema/store/read/reader.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/print/term.h"
#include "tools/record/doctor.h"

#define ASKED_AT_ONCE    8
#define PATIENCE_NS      (120 * NSEC_PER_SEC)
#define PATIENCE_MOST_NS (3600 * NSEC_PER_SEC)

struct doctor_args {
	uint64_t pid;
	int64_t timeout_ns; /* 0: PATIENCE_NS */
};

struct asked { /* a program, about what it can do */
	const char *family;
	char program[64], path[PATH_MAX];
	char *argv[6];
	bool off, missing; /* it is not installed; missing: and should be, `e` says so */
	struct err e;
	struct helper_job job;
};

struct counts {
	int ok, warn, fail, off, ready;
	int exit; /* of the first loader that failed */
};

static void os_name(char *out, size_t size)
{
	cleanup_file FILE *f = fopen("/etc/os-release", "re");
	char line[512];

	snprintf(out, size, "Linux");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "PRETTY_NAME=", 12))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, size, "%s", line + 12 + (line[12] == '"'));
		if (*out && out[strlen(out) - 1] == '"')
			out[strlen(out) - 1] = '\0';
	}
}

static const char *cgroup_kind(void)
{
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0)
		return "cgroup v2";
	if (access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0)
		return "cgroup v1 and v2 (hybrid)";
	return access("/sys/fs/cgroup", F_OK) == 0 ? "cgroup v1" : "no cgroups";
}

static void host_line(struct strbuf *out)
{
	struct utsname u = {0};
	struct sysinfo info = {0};
	char os[128], memory[32];

	uname(&u);
	sysinfo(&info);
	os_name(os, sizeof(os));
	strbuf_addf(out, "kernel %s %s · %s · %s · %ld CPUs · %s", u.release, u.machine, os,
		    cgroup_kind(), sysconf(_SC_NPROCESSORS_ONLN),
		    units_bytes((uint64_t)info.totalram * info.mem_unit, memory, sizeof(memory)));
}

static json_t *fix_typed(const char *fix)
{
	struct strbuf typed cleanup_strbuf = STRBUF_INIT;

	typed_add(&typed, fix ? fix : "");
	return typed.len ? json_text(strbuf_str(&typed)) : json_null();
}

json_t *doctor_item(const char *family, const char *name, const char *state, const char *text,
		    const char *fix)
{
	json_t *row = json_object();

	json_object_set_new(row, "family", json_text(family));
	json_object_set_new(row, "name", json_text(name));
	json_object_set_new(row, "state", json_text(state));
	json_object_set_new(row, "text", json_text(text));
	json_object_set_new(row, "fix", fix_typed(fix));
	return row;
}

static void no_result(const struct asked *a, bool memory, int64_t patience_ns, json_t *rows)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, fix cleanup_strbuf = STRBUF_INIT;
	char time[UNITS_MAX];
	struct memlimit limit;

	memlimit_read(&limit);
	if (a->job.late) {
		strbuf_addf(
			&text,
			"its check did not answer within %s and was ended: what it can record is not known",
			units_ns(patience_ns, time, sizeof(time)));
		strbuf_addf(&fix, "sudo sonde doctor --timeout %lldm",
			    (long long)(2 * patience_ns / (60 * NSEC_PER_SEC) + 1));
	} else {
		strbuf_addf(&text, "its check ended without a result%s%s%s",
			    memory ? ", for lack of memory" : "", memory && *limit.what ? ": " : "",
			    memory ? limit.what : "");
		strbuf_addstr(&fix, memory ? limit.fix ?: "" : "");
	}
	json_array_append_new(rows, doctor_item(a->family, a->program, "fail", strbuf_str(&text),
						fix.len ? strbuf_str(&fix) : NULL));
}

/* `family` NULL: it serves all families, and only what it leaves out is said, under its name.
 * `needed`: it fails where it is not installed. */
static void asked_fill(struct asked *a, const char *family, const char *name, bool needed,
		       const char *store)
{
	*a = (struct asked){.family = family};
	snprintf(a->program, sizeof(a->program), "sonde-%s", name);
	a->off = !needed && sibling_find(a->program, a->path, NULL) < 0;
	a->missing = !a->off && sibling_find(a->program, a->path, &a->e) < 0;
	memcpy(a->argv, (char *[]){a->path, "--check", "--json", "--store", (char *)store, NULL},
	       sizeof(a->argv));
	a->job = (struct helper_job){.argv = a->argv, .out = STRBUF_INIT};
}

/* What `program --check` reports, as items of its family. It is ready, or its exit code; -1: it is
 * absent. */
static int answer_take(struct asked *a, bool memory, int64_t patience_ns, json_t *rows)
{
	json_t *said, *list, *row;
	int code = 0;
	size_t i;

	if (a->missing || a->job.rc) {
		const struct err *e = a->missing ? &a->e : &a->job.e;

		json_array_append_new(rows,
				      doctor_item(a->family, a->program, "fail", e->what, e->fix));
		return (int)e->exit;
	}
	said = a->job.late ? NULL : json_loadb(strbuf_str(&a->job.out), a->job.out.len, 0, NULL);
	list = json_object_get(said, "items");
	if (!json_is_array(list))
		no_result(a,
			  memory && WIFSIGNALED(a->job.status) &&
				  WTERMSIG(a->job.status) == SIGKILL,
			  patience_ns, rows);
	json_array_foreach (list, i, row) {
		json_object_set_new(row, "fix",
				    fix_typed(json_string_value(json_object_get(row, "fix"))));
		json_object_set_new(row, "family", json_text(a->family));
		json_array_append(rows, row);
	}
	if (!json_is_true(json_object_get(said, "ok")))
		code = WIFEXITED(a->job.status) && WEXITSTATUS(a->job.status) ?
			       WEXITSTATUS(a->job.status) :
			       EXIT_RUNTIME;
	else if (json_is_true(json_object_get(said, "absent")))
		code = -1;
	json_decref(said);
	return code;
}

/* All loaders, then what serves them: on a busy host each waits long for its turn on a CPU, so
 * several are asked at a time; what they say has the order of the list. */
static void ask_all(const char *store, int64_t patience_ns, json_t *rows, struct counts *c)
{
	static const char *const helpers[] = {"maps", "pstack"};
	const size_t n_helpers = ARRAY_SIZE(helpers), most = families_count() + n_helpers;
	cleanup_free struct asked *asked = mem_array(most, sizeof(*asked));
	cleanup_free struct helper_job *jobs = mem_array(most, sizeof(*jobs));
	const uint64_t kills = memlimit_kills();
	size_t n = 0, k = 0;
	bool memory;

	for (const struct probe_family *f = FAMILIES; f->name; f++)
		asked_fill(&asked[n++], f->name, f->name, f->by_default, store);
	for (size_t i = 0; i < n_helpers; i++)
		asked_fill(&asked[n++], NULL, helpers[i], false, store);
	for (size_t i = 0; i < n; i++)
		if (!asked[i].off && !asked[i].missing)
			jobs[k++] = asked[i].job;
	helper_outputs(jobs, k, ASKED_AT_ONCE, patience_ns);
	memory = memlimit_kills() > kills;
	k = 0;
	for (size_t i = 0; i < n; i++) {
		struct asked *a = &asked[i];
		int code;

		if (a->off) {
			json_array_append_new(rows, doctor_item(a->family, a->program, "off",
								"not installed", NULL));
			continue;
		}
		if (!a->missing)
			a->job = jobs[k++];
		code = answer_take(a, memory, patience_ns, rows);
		strbuf_release(&a->job.out);
		c->ready += a->family && !code;
		if (code > 0 && !c->exit)
			c->exit = code;
	}
}

/* Can the current user read the stored data? */
static void check_store(const char *store, json_t *rows)
{
	cleanup_free struct store_segment_info *segments = NULL;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	uint64_t bytes = 0;
	struct err e = {0};
	char size[32];
	size_t n = 0;
	int rc;

	rc = store_segments(store, 0, INT64_MAX, &segments, &n, &e);
	if (rc < 0) {
		bool none = rc == -ENOENT;

		json_array_append_new(rows, doctor_item(NULL, "recordings", none ? "off" : "warn",
							none ? "none yet" : e.what,
							none ? "sudo sonde record -d 10s" : e.fix));
		return;
	}
	for (size_t i = 0; i < n; i++)
		bytes += segments[i].bytes;
	strbuf_addf(&text, "%s · %s in %zu segment%s", store,
		    units_bytes(bytes, size, sizeof(size)), n, n == 1 ? "" : "s");
	json_array_append_new(rows, doctor_item(NULL, "recordings", "ok", strbuf_str(&text), NULL));
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* Up to its first comma: what is free of a disk changes meanwhile. */
static bool same_said(const json_t *a, const json_t *b)
{
	const char *x = json_string_value(json_object_get(a, "text")) ?: "",
		   *y = json_string_value(json_object_get(b, "text")) ?: "";
	const size_t n = strcspn(x, ",");

	return !strcmp(x, y) ||
	       (same(a, b, "state") && n == strcspn(y, ",") && !strncmp(x, y, n) && x[n] &&
		!strcmp(json_string_value(json_object_get(a, "name")) ?: "", "store"));
}

/* Reported by another family, too, of the rows from `from` to `to`: each family checks the host
 * itself. */
static bool said(const json_t *rows, size_t at, size_t from, size_t to)
{
	const json_t *row = json_array_get(rows, at);

	for (size_t i = from; i < to; i++) {
		const json_t *x = json_array_get(rows, i);

		if (i != at && same(x, row, "name") && same_said(x, row))
			return true;
	}
	return false;
}

static bool said_before(const json_t *rows, size_t at)
{
	return said(rows, at, 0, at);
}

static void count(const json_t *rows, struct counts *c)
{
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *state = json_string_value(json_object_get(row, "state"));

		if (!state || said_before(rows, i))
			continue;
		c->ok += !strcmp(state, "ok");
		c->warn += !strcmp(state, "warn");
		c->fail += !strcmp(state, "fail");
		c->off += !strcmp(state, "off");
	}
}

void doctor_print(json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state")) ?: "?";
	const char *fix = json_string_value(json_object_get(row, "fix"));
	enum term_color colour = !strcmp(state, "ok")   ? TERM_GREEN :
				 !strcmp(state, "fail") ? TERM_RED :
				 !strcmp(state, "warn") ? TERM_YELLOW :
							  TERM_DIM;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const char *raw = json_string_value(json_object_get(row, "text")) ?: "";

	strbuf_addshown(&text, raw, strlen(raw));
	printf(" %s%-5s%s %-20s %s\n", term_on(stdout, colour), state, term_off(stdout),
	       json_string_value(json_object_get(row, "name")) ?: "", strbuf_str(&text));
	if (fix && *fix && strcmp(state, "ok"))
		printf("       fix: %s\n", fix);
}

/* The rows of one family; NULL: those of the host, which no family has alone. */
static void print_family(json_t *rows, const char *family)
{
	bool any = false;
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *of = json_string_value(json_object_get(row, "family"));
		const bool alone = of && !said(rows, i, 0, json_array_size(rows));

		if (said_before(rows, i) || alone != (family != NULL) ||
		    (family && strcmp(of, family) != 0))
			continue;
		if (!any)
			printf("%s%s%s\n", term_on(stdout, TERM_BOLD),
			       family ? family : "this host", term_off(stdout));
		any = true;
		doctor_print(row);
	}
}

static void print_text(json_t *rows, const struct counts *c)
{
	struct strbuf host cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT;

	host_line(&host);
	puts(strbuf_str(&host));
	print_family(rows, NULL);
	for (const struct probe_family *f = FAMILIES; f->name; f++)
		print_family(rows, f->name);
	typed_add(&next, c->fail ? "fix what is marked fail, then: sudo sonde doctor" :
				   "sudo sonde record -d 10s");
	printf("%d of %zu probe families ready, %d failed, %d warnings.  next: %s\n", c->ready,
	       families_count(), c->fail, c->warn, strbuf_str(&next));
}

static int doctor_run(struct verb_call *call, struct err *e)
{
	json_t *envelope = json_envelope("doctor", 0, 0), *rows = json_rows(envelope);
	struct strbuf host cleanup_strbuf = STRBUF_INIT;
	const struct doctor_args *a = call->args;
	struct counts c = {0};

	if (a->pid) {
		json_decref(envelope);
		return doctor_pid(call, a->pid, e);
	}
	ask_all(call->store, a->timeout_ns ?: PATIENCE_NS, rows, &c);
	check_store(call->store, rows);
	count(rows, &c);
	call->status = c.fail || c.exit ? EXIT_RUNTIME : EXIT_OK;
	if (!call->json) {
		print_text(rows, &c);
		json_decref(envelope);
		return 0;
	}
	host_line(&host);
	json_object_set_new(envelope, "host", json_text(strbuf_str(&host)));
	json_object_set_new(envelope, "ok", json_boolean(call->status == EXIT_OK));
	return json_print(envelope, stdout, 0);
}

/* clang-format off */
static const struct option OPTIONS[] = {
	{.name = "pid", .letter = 'p', .type = OPTION_UINT, .arg = "PID",
	 .help = "report how sonde can unwind the stacks of this process", .offset = offsetof(struct doctor_args, pid)},
	{.name = "timeout", .type = OPTION_DURATION, .arg = "TIME", .max = PATIENCE_MOST_NS,
	 .help = "how long each program may take to answer (default 2m)", .offset = offsetof(struct doctor_args, timeout_ns)},
	{0},
};
/* clang-format on */

static const char *const EXAMPLES[] = {
	"sudo sonde doctor",
	"sudo sonde doctor --pid 812",
	"sudo sonde doctor --json | jq -r '.rows[] | select(.state == \"fail\") | .fix'",
	NULL,
};

const struct verb verb_doctor = {
	.name = "doctor",
	.summary = "check what this host can record, and how to fix what is missing",
	.usage = "",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct doctor_args),
	.uses = VERB_STORE | VERB_JSON,
	.run = doctor_run,
};
