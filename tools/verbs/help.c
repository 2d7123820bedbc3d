/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/verbs/help.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "schema/store/read/reader.h"
#include "tools/print/term.h"
#include "tools/record/recorder.h"
#include "tools/select/select.h"

const struct option COMMON_OPTIONS[] = {
	{"help", 'h', OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, help)},
	{"quiet", 'q', OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, quiet)},
	{"color", 0, OPTION_STRING, "WHEN", NULL, OPTION_AT(struct common_args, color)},
	{"wide", 0, OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, wide)},
	{"no-pager", 0, OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, no_pager)},
	{0},
};

const struct option STORE_OPTIONS[] = {
	{"store", 0, OPTION_LIST, "DIR",
	 "store folder or one .db file (default: $SONDE_STORE); 'hosts/*' reads several",
	 OPTION_AT(struct common_args, store)},
	{0},
};

#define JSON_FORMS "print JSON (--ndjson: a row a line; --schema: its JSON Schema"

const struct option JSON_OPTIONS[] = {
	{"json", 0, OPTION_FLAG, NULL, JSON_FORMS ")", OPTION_AT(struct common_args, json)},
	{"ndjson", 0, OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, ndjson)},
	{"schema", 0, OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, schema)},
	{0},
};

const struct option JSON_LIST_OPTIONS[] = {
	{"json", 0, OPTION_FLAG, NULL, JSON_FORMS "; also --with LISTS)",
	 OPTION_AT(struct common_args, json)},
	{"ndjson", 0, OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, ndjson)},
	{"schema", 0, OPTION_FLAG, NULL, NULL, OPTION_AT(struct common_args, schema)},
	{"with", 0, OPTION_STRING, "LISTS", NULL, OPTION_AT(struct common_args, with)},
	{0},
};

static void print_names(const struct option *table, FILE *out)
{
	for (const struct option *o = table; o->name; o++)
		if (o->type == OPTION_LIST)
			fprintf(out, " --%s", o->name);
}

static void print_selection(const struct verb *v, FILE *out)
{
	fprintf(out,
		"range: --last 15m | --from T [--to T] | --at T | --rec ID|last|last~1   (sonde help range)\n");
	if (v->uses & VERB_RANGE_ONLY)
		return;
	fprintf(out, "filters:");
	print_names(SELECT_FILTER_OPTIONS, out);
	fprintf(out, " --self\n  '!x' not, '~x' regex, repeatable   (sonde help filters)\n");
	if (v->uses & VERB_SELECT_WORD)
		fprintf(out,
			"WHAT: name of a container, unit or command (or a part of it), or a pid\n");
}

void help_verb(const struct verb *v, FILE *out)
{
	fprintf(out, "%ssonde %s%s: %s\n", term_on(out, TERM_BOLD), v->name, term_off(out),
		v->summary);
	if (v->now)
		fprintf(out, "this is now: sonde %s\n", v->now);
	fprintf(out, "usage: sonde %s%s%s\nexamples:\n", v->name, v->usage[0] ? " " : "", v->usage);
	for (const char *const *x = v->examples; *x; x++)
		fprintf(out, "  %s\n", *x);
	fprintf(out, "options:\n");
	options_print(v->options, out);
	if (v->uses & VERB_JSON)
		options_print(verb_json_options(v), out);
	if (v->uses & (VERB_STORE | VERB_SELECT))
		options_print(STORE_OPTIONS, out);
	fprintf(out, "      -q quiet  --wide  --color auto|always|never  --no-pager  -h help\n");
	if (v->uses & VERB_SELECT)
		print_selection(v, out);
	if (v->more)
		fprintf(out, "%s\n", v->more);
}

void help_all(FILE *out)
{
	fprintf(out, "sonde: see what a Linux host is doing, down to the line of code\n"
		     "usage: sonde [VERB] [options]   (without a verb: the overview)\n");
	for (const struct verb_group *g = VERB_GROUPS; g->title; g++) {
		fprintf(out, "%s%s%s\n", term_on(out, TERM_BOLD), g->title, term_off(out));
		for (const struct verb *const *v = g->verbs; *v; v++)
			fprintf(out, "  %-11s %s\n", (*v)->name, (*v)->summary);
	}
	fputs("examples:\n"
	      "  sudo sonde record -d 10s\n"
	      "  sonde explain web --at 13:17\n"
	      "more: sonde VERB --help, sonde help range, sonde help filters, man sonde\n"
	      "exit codes: 0 ok, 1 failed, 2 usage, 3 kernel lacks something, 4 nothing matched, 5 no permission, 6 store\n",
	      out);
}

static const char RANGE_TEXT[] =
	"time ranges, the same for every verb; times are local unless they name a zone\n"
	"  --last 15m               the last 15 minutes\n"
	"  --from T --to T          between two times; without --to: until now\n"
	"  --at T                   from 30 seconds before to 30 seconds after\n"
	"  --rec 17 | last | last~1 one recording, by number or counted from the newest\n"
	"  (none)                   the newest recording, at most its last 15 minutes\n"
	"T is one of\n"
	"  2026-11-20T03:10:00Z  2026-11-20T03:10:00+01:00   RFC 3339\n"
	"  2026-11-20 03:10[:30]  2026-11-20                 a date alone means 00:00\n"
	"  03:10  today 03:10  yesterday 03:10  yesterday    03:10 is the most recent 03:10\n"
	"  -2h  -1h30m  now                                  before now\n"
	"  1795144200  1795144200000                         seconds or milliseconds since 1970\n"
	"durations: 250ms 10s 15m 2h 3d 1w 1h30m\n"
	"examples:\n"
	"  sonde flame --at 'yesterday 03:15'\n"
	"  sonde stacks --from -2h --to -1h\n";

static const char FILTER_TEXT[] =
	"filters, the same for every verb\n"
	"  --container NAME   name, also one that it had; id, or at least the first 6 digits of it; or of\n"
	"                     compose the SERVICE, PROJECT or PROJECT/SERVICE\n"
	"  --image NAME       the container's image\n"
	"  --pid N  --tid N   process or thread, as numbered on the host\n"
	"  --comm NAME        command name of the process\n"
	"  --exe PATH         path of the executable, or its last component\n"
	"  --user NAME        name or number\n"
	"  --unit NAME        systemd unit, with or without .service; but in flame, stacks and export the words\n"
	"                     samples, events, objects, time and bytes choose the unit to rank by (see --type)\n"
	"  --cgroup PATH      that cgroup and those below it\n"
	"  --lang NAME        python, go, java (or jvm), node, ruby, php, perl, dotnet, c++; or a runtime: python3.11\n"
	"  --label KEY=VALUE  label of imported samples, or KEY: any value (flame, stacks, export, timeline)\n"
	"  --host NAME        one host, when several stores are read\n"
	"  --self             include sonde's own processes\n"
	"several values of one filter: any may match; different filters: all must match; '!x': not x;\n"
	"'~re': extended regular expression. A bare word is looked up in containers, units, commands and pids:\n"
	"first as the whole name, then as a part of it.\n"
	"examples:\n"
	"  sonde flame --container web --comm '!nginx'\n"
	"  sonde stacks --comm '~^(gcc|cc1)' --user build\n";

int help_topic(const char *topic, FILE *out)
{
	if (!strcmp(topic, "range") || !strcmp(topic, "time"))
		fputs(RANGE_TEXT, out);
	else if (!strcmp(topic, "filters") || !strcmp(topic, "filter"))
		fputs(FILTER_TEXT, out);
	else
		return -ENOENT;
	return 0;
}

/* "recorder: running, rec 3 (pid 812)", or how many recordings there are. */
static void print_recorder(const char *store, FILE *out)
{
	struct select_recording *r = NULL;
	size_t n = 0, i;
	int rc = select_recordings(store, &r, &n, NULL);

	if (rc == -EACCES || rc == -EPERM)
		fprintf(out, "recorder: unknown (you may not read the store)\n");
	for (i = n; i-- > 0;) {
		if (!recorder_is_live(&r[i]))
			continue;
		fprintf(out, "recorder: running, rec %lld (pid %lld)\n", (long long)r[i].number,
			(long long)r[i].pid);
		break;
	}
	if (!rc && i == (size_t)-1)
		fprintf(out, "recorder: not running; %zu recording%s in the store\n", n,
			n == 1 ? "" : "s");
	else if (rc && rc != -EACCES && rc != -EPERM)
		fprintf(out, "recorder: not running; nothing recorded yet\n");
	select_recordings_free(r, n);
}

void help_summary(const char *store, FILE *out)
{
	static const struct {
		const char *command, *what;
	} first[] = {
		{"sudo sonde doctor", "check what this host can record, and what is missing"},
		{"sudo sonde record -d 10s", "record CPU samples for ten seconds"},
		{"sonde flame", "draw the newest recording as a flame graph, in one HTML file"},
		{"sonde stacks -n 10", "print the functions that used the most CPU time"},
		{"sudo sonde up", "record in the background from now on"},
		{"sonde explain", "say why requests were slow, once l7 and offcpu record, too"},
	};
	const size_t n = ARRAY_SIZE(first);

	struct strbuf command cleanup_strbuf = STRBUF_INIT;
	int width = 26;

	fputs("sonde shows what a Linux host is doing, down to the line of code.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < 2 * n; i++) { /* first pass: the width; second pass: the lines */
		strbuf_reset(&command);
		typed_add(&command, first[i % n].command);
		width = (int)command.len > width ? (int)command.len : width;
		if (i >= n)
			fprintf(out, "  %-*s %s\n", width, strbuf_str(&command), first[i % n].what);
	}
	fprintf(out, "\nstore:    %s\n", store);
	print_recorder(store, out);
	fprintf(out, "more:     sonde help, sonde VERB --help, man sonde\n");
}
