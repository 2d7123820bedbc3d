/* SPDX-License-Identifier: Apache-2.0 */
/* sonde flame: the selection as a flame graph in one file; the end of its name says in which form. */
#include <errno.h>
#include <langinfo.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "tools/flame_text.h"
#include "tools/json.h"
#include "tools/fold_kind.h"
#include "tools/outfile.h"
#include "tools/output.h"
#include "tools/term.h"
#include "tools/verb.h"

extern char **environ;

struct flame_args {
	const char *type;
	const char *output, *group, *source_url;
	bool open, lines, no_inline, text;
};

static const struct option FLAME_OPTIONS[] = {
	FOLD_KIND_OR_WALL_OPTION(struct flame_args, type),
	{"output", 'o', OPTION_STRING, "FILE", "x.html, .svg, .folded, .pb.gz (pprof) or .json; the end says which",
	 offsetof(struct flame_args, output)},
	{"text", 0, OPTION_FLAG, NULL, "draw it here, in the terminal", offsetof(struct flame_args, text)},
	{"source-url", 0, OPTION_STRING, "URL", "the page's links to source; {file} and {line} are filled in",
	 offsetof(struct flame_args, source_url)},
	{"group", 0, OPTION_STRING, "BY", "first row: none, container, process or thread",
	 offsetof(struct flame_args, group)},
	{"lines", 0, OPTION_FLAG, NULL, "functions told apart by line: name (file.c:12)", offsetof(struct flame_args, lines)},
	{"no-inline", 0, OPTION_FLAG, NULL, "inlined functions count as their caller", offsetof(struct flame_args, no_inline)},
	{"open", 0, OPTION_FLAG, NULL, "show the page in a browser", offsetof(struct flame_args, open)},
	{0},
};

static const char *const FLAME_EXAMPLES[] = {
	"sonde flame",
	"sonde flame nginx --last 10m --open",
	"sonde flame --text",
	"sonde flame postgres --type wall",
	"sonde flame -o cpu.pb.gz && go tool pprof -top cpu.pb.gz",
	NULL,
};

/* ./sonde-flame-WHAT-HHMM.html; WHAT may come from outside: only harmless characters stay. */
static char *default_path(const struct selection *sel)
{
	struct strbuf s = STRBUF_INIT;
	const char *what = *sel->what ? sel->what : "host";
	time_t from = (time_t)(sel->from_ns / NSEC_PER_SEC);
	struct tm tm = {0};
	size_t n = 0;
	bool gap = false;

	strbuf_addstr(&s, "./sonde-flame-");
	for (; *what && n < 60; what++) {
		bool plain = strchr("._", *what) ? n > 0 : (*what >= '0' && *what <= '9') ||
			     ((*what | 32) >= 'a' && (*what | 32) <= 'z');

		if (plain) {
			strbuf_addf(&s, "%s%c", gap && n ? "-" : "", *what);
			n++;
		}
		gap = !plain;
	}
	localtime_r(&from, &tm);
	strbuf_addf(&s, "%s-%02d%02d.html", n ? "" : "x", tm.tm_hour, tm.tm_min);
	return strbuf_take(&s);
}

/* xdg-open may stay as long as the browser does: after a moment without bad news it is left alone. */
static int browser_open(const char *path, struct err *e)
{
	char *argv[] = {(char *)"xdg-open", (char *)path, NULL};
	pid_t pid;
	int status = 0, error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	for (int i = 0; !error && i < 20; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		usleep(100 * 1000);
	}
	if (!error && !status)
		return 0;
	err_set(e, -ENOENT, EXIT_RUNTIME, "wrote %s, but cannot open a browser: xdg-open %s", path,
		error ? "is missing" : "failed");
	err_fix(e, "open the file in a browser by hand");
	return -ENOENT;
}

static void say_written(const struct verb_call *call, const char *path, enum output_form form, uint64_t bytes)
{
	char size[32];

	if (call->json) {
		json_t *j = json_envelope("flame.written", call->sel->from_ns, call->sel->to_ns), *row = json_object();

		json_object_set_new(row, "path", json_text(path));
		json_object_set_new(row, "bytes", json_integer((json_int_t)bytes));
		json_array_append_new(json_rows(j), row);
		json_print(j, stdout, 1);
		return;
	}
	printf("wrote %s (%s%s)\n", path, term_bytes(bytes, size, sizeof(size)),
	       form == OUTPUT_HTML ? ", works offline" : "");
	fflush(stdout);
	if (call->quiet)
		return;
	if (form == OUTPUT_HTML)
		fputs("open in a browser: click or Enter zooms, / searches, ? lists all keys     (--open to launch)\n", stderr);
	else if (form == OUTPUT_PPROF)
		fprintf(stderr, "next: go tool pprof -top %s\n", path);
}

static int text_run(const struct verb_call *call, const struct fold_opts *opts, struct err *e)
{
	bool terminal = term_is_tty(stdout);
	struct fold *f = NULL;
	int ret = fold_make(call->sel, opts, &f, e);

	if (ret)
		return ret;
	flame_text_write(f, stdout, call->wide || !terminal ? 0 : term_width(stdout),
			 terminal && !strcmp(nl_langinfo(CODESET), "UTF-8"));
	fold_free(f);
	return ferror(stdout) ? err_set(e, -EIO, EXIT_RUNTIME, "cannot write the answer") : 0;
}

static int flame_run(struct verb_call *call, struct err *e)
{
	const struct flame_args *a = call->args;
	cleanup_free char *path = a->output ? strdup(a->output) : default_path(call->sel);
	cleanup_outfile struct outfile out = OUTFILE_INIT;
	enum output_form form = OUTPUT_HTML;
	struct fold_opts opts = {.lines = a->lines, .no_inline = a->no_inline};
	uint64_t bytes = 0;
	int ret;

	if (!path)
		return err_set(e, -ENOMEM, EXIT_RUNTIME, "out of memory");
	ret = output_group_of(a->group, &opts.group, e);
	if (!ret)
		ret = fold_kind_or_wall_of(a->type, call->sel, &opts, e);
	if (!ret && a->output)
		ret = output_form_of(path, &form, e);
	if (!ret && opts.wall && !a->group && form != OUTPUT_PPROF)
		opts.group = FOLD_BY_THREAD; /* each is as long as the wall time */
	if (ret)
		return ret;
	if (a->text && a->output) {
		err_set(e, -EINVAL, EXIT_USAGE, "--text is for the terminal, -o for a file: one of the two");
		err_fix(e, "sonde flame --text > FILE");
		return -EINVAL;
	}
	if (a->text && !call->json)
		return text_run(call, &opts, e);
	if (call->json && !a->output) {
		ret = output_write(OUTPUT_JSON, call->sel, &opts, NULL, stdout, e);
		return ret ? ret : ferror(stdout) ? err_set(e, -EIO, EXIT_RUNTIME, "cannot write the answer") : 0;
	}
	ret = outfile_open(&out, path, e);
	if (!ret)
		ret = output_write(form, call->sel, &opts, a->source_url, out.f, e);
	if (!ret)
		ret = outfile_commit(&out, &bytes, e);
	if (ret)
		return ret;
	say_written(call, path, form, bytes);
	return a->open ? browser_open(path, e) : 0;
}

const struct verb verb_flame = {
	.name = "flame",
	.summary = "where the CPU time went, as a flame graph in one file",
	.usage = "[WHAT] [-o FILE]",
	.examples = FLAME_EXAMPLES,
	.options = FLAME_OPTIONS,
	.args_size = sizeof(struct flame_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON,
	.run = flame_run,
};
