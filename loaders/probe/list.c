/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without a word: the presets, and how many others there are. With one: presets, tracepoints and
 * system calls whose names hold it, with their arguments. With a path: the functions and USDT
 * probes of that file, whose names hold the second word. What a hit takes is measured here, by the
 * kind of probe (price.h); else it is an estimate, and is called so.
 */
#include "loaders/probe/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/tracefs.h"
#include "loaders/probe/asked.h"
#include "loaders/probe/code.h"
#include "loaders/probe/format.h"
#include "loaders/probe/insn.h"
#include "loaders/probe/plan.h"
#include "loaders/probe/price.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/options.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/probespec/presets.h"

struct listing {
	bool json;
	const char *word; /* ""; not NULL */
	int events;       /* tracefs */
	size_t n;
	size_t tracepoints, calls; /* all that there are */
	struct prices prices;
};

static const struct program PROGRAM = {
	.name = "sonde-probe",
	.usage = "--list [--json] [WORD | FILE [WORD]]",
	.about =
		"Lists what probes can be set on: presets, tracepoints, system calls, code of a file.",
	.words = 3,
};

/* ---- lines ---- */

static void json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar((unsigned char)*text < 0x20 ? ' ' : *text);
	}
	putchar('"');
}

static void line(struct listing *l, const char *spec, const char *args, const char *help,
		 uint64_t price_ns)
{
	l->n++;
	if (!l->json) {
		printf("  %-44s %5.2f us  %s%s%s\n", spec, (double)price_ns / 1000, args,
		       *args && *help ? "  " : "", help);
		return;
	}
	printf("%s{\"probe\":", l->n > 1 ? ",\n" : "");
	json_text(spec);
	printf(",\"args\":");
	json_text(args);
	printf(",\"help\":");
	json_text(help);
	printf(",\"hit_ns\":%llu}", (unsigned long long)price_ns);
}

static void heading(const struct listing *l, const char *text)
{
	if (!l->json)
		printf("%s\n", text);
}

/* ---- presets ---- */

static bool holds(const struct listing *l, const char *a, const char *b)
{
	return strcasestr(a, l->word) || strcasestr(b, l->word);
}

/* Of one in a file, which instruction it is on is not known before it is recorded: the dearer one.
 */
static uint64_t preset_price(const struct listing *l, const struct probespec_preset *p)
{
	const bool pair = strstr(p->spec, "latency ") || strstr(p->spec, "%return");
	const uint64_t hook = p->file && !strstr(p->spec, "usdt:") ? l->prices.stepped :
			      p->file                              ? l->prices.emulated :
								     l->prices.tracepoint;

	if (!strncmp(p->spec, "syscall", 7))
		return l->prices.call;
	return pair ? 2 * hook : hook;
}

static void presets(struct listing *l)
{
	heading(l, l->prices.measured ?
			   "presets                                          a hit, measured here" :
			   "presets                                          a hit, estimated");
	for (const struct probespec_preset *p = PROBESPEC_PRESETS; p->name; p++)
		if (holds(l, p->name, p->spec))
			line(l, p->name, *l->word ? p->spec : "", p->help, preset_price(l, p));
}

/* ---- tracepoints and system calls ---- */

/* What it has without (): "path str, flags int32". "": it cannot be read. */
static void arguments(struct listing *l, const char *spec, const char *name, struct strbuf *out)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	struct format_field fields[FORMAT_FIELDS];
	struct plan_source source = {.fields = fields};
	struct probespec s;
	struct probe_plan plan;

	if (tracefs_format(l->events, name, &text) || probespec_parse(spec, &s, NULL))
		return;
	source.n_fields = format_read(strbuf_str(&text), text.len, fields);
	if (plan_make(&s, NULL, &source, &plan, NULL))
		return;
	for (uint32_t i = 0; i < s.n_args; i++)
		strbuf_addf(out, "%s%s %s", i ? ", " : "", s.args[i].name,
			    probespec_type_name(s.args[i].type));
}

static void event(struct listing *l, const char *group, const char *name)
{
	static const char enter[] = "sys_enter_", leave[] = "sys_exit_";
	const bool call = !strcmp(group, "syscalls");
	struct strbuf args cleanup_strbuf = STRBUF_INIT;
	char spec[300], path[300];

	if (call && strncmp(name, enter, sizeof(enter) - 1) != 0)
		return;
	if (!call && !strncmp(name, leave, sizeof(leave) - 1))
		return;
	if (call)
		snprintf(spec, sizeof(spec), "syscall:%.60s", name + sizeof(enter) - 1);
	else
		snprintf(spec, sizeof(spec), "tracepoint:%.60s:%.60s", group, name);
	l->tracepoints += !call;
	l->calls += call;
	if (!*l->word || !strcasestr(spec, l->word))
		return;
	snprintf(path, sizeof(path), "%.60s/%.60s", group, name);
	arguments(l, spec, path, &args);
	line(l, spec, strbuf_str(&args), "", call ? l->prices.call : l->prices.tracepoint);
}

static int not_dots(const struct dirent *d)
{
	return *d->d_name != '.';
}

static void group_events(struct listing *l, const char *group)
{
	struct dirent **names = NULL;
	int n = scandirat(l->events, group, &names, not_dots, alphasort);

	for (int i = 0; i < n; i++) {
		if (names[i]->d_type == DT_DIR)
			event(l, group, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static void events(struct listing *l)
{
	struct dirent **groups = NULL;
	int n = scandirat(l->events, ".", &groups, not_dots, alphasort);

	if (*l->word)
		heading(l, "tracepoints and system calls");
	for (int i = 0; i < n; i++) {
		if (groups[i]->d_type == DT_DIR && strcmp(groups[i]->d_name, "ftrace") != 0)
			group_events(l, groups[i]->d_name);
		free(groups[i]);
	}
	free(groups);
}

/* ---- code ---- */

static void file_line(struct listing *l, const char *path, char *text)
{
	char kind = 0, bytes[40] = "", provider[64] = "", name[200] = "";
	unsigned long long offset, more;
	struct strbuf spec cleanup_strbuf = STRBUF_INIT;
	int at = 0;
	uint64_t entry;

	if (*text == 'u' && sscanf(text, "%c %llx %llx %39s %63s %199s %n", &kind, &offset, &more,
				   bytes, provider, name, &at) == 6)
		strbuf_addf(&spec, "usdt:%s:%s:%s", path, provider, name);
	else if (sscanf(text, "%c %llx %llx %39s %199s", &kind, &offset, &more, bytes, name) == 5)
		strbuf_addf(&spec, "%s:%s:%s", kind == 'g' ? "go" : "func", path, name);
	else
		return;
	entry = kind == 'f' ? 2 * insn_entry(bytes) : 0;
	line(l, strbuf_str(&spec), kind == 'u' ? text + at : "", "",
	     prices_code(&l->prices, insn_price(bytes + entry)));
}

static int file_places(struct listing *l, const char *path, const char *word, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	int rc = code_places(path, "--places", word, false, &text, e);

	for (char *at = text.buf, *end; !rc && at && (end = strchr(at, '\n')); at = end + 1) {
		*end = 0;
		file_line(l, path, at);
	}
	return rc;
}

/* ---- the whole ---- */

static int all(struct listing *l, struct err *e)
{
	cleanup_fd int fd = tracefs_open(e);

	if (fd < 0)
		return fd;
	l->events = fd;
	presets(l);
	events(l);
	if (!*l->word && !l->json)
		printf("\n%zu tracepoints and %zu system calls: sonde probes WORD lists those with WORD in their names, sonde probes FILE functions and USDT probes\n",
		       l->tracepoints, l->calls);
	return 0;
}

static int list(struct listing *l, const struct option_words *words, struct err *e)
{
	const bool file = words->n && *words->items[0] == '/';
	int rc;

	l->word = words->n && !file ? words->items[0] : "";
	prices_measure(&l->prices);
	if (l->json)
		printf("{\"schema\":\"sonde.probes/1\",\"rows\":[");
	if (file)
		heading(l,
			l->prices.measured ?
				"functions and USDT probes                        a hit, measured here" :
				"functions and USDT probes                        a hit, estimated");
	rc = file ? file_places(l, words->items[0], words->n > 1 ? words->items[1] : "", e) :
		    all(l, e);
	if (l->json)
		printf("]}\n");
	if (!rc && !l->n) {
		err_set(e, -ENOENT, EXIT_NOTHING, "nothing with '%.60s' in its name",
			words->n > file ? words->items[file] : "");
		err_fix(e, "sonde probes    lists the presets, and how many others there are");
		rc = -ENOENT;
	}
	return rc;
}

int list_main(int argc, char **argv)
{
	struct list_opts {
		bool list, json;
	} o = {0};
	const struct option options[] = {
		{"list", 0, OPTION_FLAG, NULL, "list what there is",
		 OPTION_AT(struct list_opts, list)},
		{"json", 0, OPTION_FLAG, NULL, "as JSON", OPTION_AT(struct list_opts, json)},
		{0}};
	const struct option_set set = {options, &o};
	struct option_words words;
	struct listing l = {.events = -1};
	struct err e = {0};
	int rc;

	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	load_init(false);
	rc = program_options(&PROGRAM, argc, argv, &set, 1, &words, &e);
	l.json = o.json;
	if (!rc)
		rc = list(&l, &words, &e);
	options_release(&set, 1, &words);
	return program_end(PROGRAM.name, rc, &e);
}
