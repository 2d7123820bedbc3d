/* SPDX-License-Identifier: Apache-2.0 */
/* help: texts made from the tables. */
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
	 "the store's folder, or one .db file (else $SONDE_STORE); 'hosts/*': of several",
	 OPTION_AT(struct common_args, store)},
	{0},
};

const struct option JSON_OPTIONS[] = {
	{"json", 0, OPTION_FLAG, NULL, "the answer as JSON", OPTION_AT(struct common_args, json)},
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
			"WHAT: a container's, unit's or command's name, or a part of it, or a pid\n");
}

void help_verb(const struct verb *v, FILE *out)
{
	fprintf(out, "%ssonde %s%s: %s\n", term_on(out, TERM_BOLD), v->name, term_off(out),
		v->summary);
	fprintf(out, "usage: sonde %s%s%s\nexamples:\n", v->name, v->usage[0] ? " " : "", v->usage);
	for (const char *const *x = v->examples; *x; x++)
		fprintf(out, "  %s\n", *x);
	fprintf(out, "options:\n");
	options_print(v->options, out);
	if (v->uses & VERB_JSON)
		options_print(JSON_OPTIONS, out);
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
	fprintf(out,
		"sonde: what one Linux host is doing, down to the line of code\nusage: sonde VERB [options]\n");
	for (const struct verb *const *v = VERBS; *v; v++)
		fprintf(out, "  %-11s %s\n", (*v)->name, (*v)->summary);
	fputs("examples:\n"
	      "  sudo sonde record -d 10s\n"
	      "  sonde flame --last 15m nginx\n"
	      "more: sonde VERB --help, sonde help range, sonde help filters, man sonde\n"
	      "exit codes: 0 ok, 1 failed, 2 usage, 3 kernel lacks something, 4 nothing matched, 5 rights, 6 store\n",
	      out);
}

static const char RANGE_TEXT[] =
	"ranges, the same for every verb; times are local unless they say otherwise\n"
	"  --last 15m               the last 15 minutes\n"
	"  --from T --to T          between two times; --to may be left out (now)\n"
	"  --at T                   30 seconds before and after\n"
	"  --rec 17 | last | last~1 one recording, by number or counted from the newest\n"
	"  (none)                   the newest recording, at most its last 15 minutes\n"
	"T is one of\n"
	"  2026-11-20T03:10:00Z  2026-11-20T03:10:00+01:00   RFC 3339\n"
	"  2026-11-20 03:10[:30]  2026-11-20                 a day alone is its midnight\n"
	"  03:10  today 03:10  yesterday 03:10  yesterday    03:10 is the last one that was\n"
	"  -2h  -1h30m  now                                  before now\n"
	"  1795144200  1795144200000                         seconds or milliseconds since 1970\n"
	"durations: 250ms 10s 15m 2h 3d 1w 1h30m\n"
	"examples:\n"
	"  sonde flame --at 'yesterday 03:15'\n"
	"  sonde stacks --from -2h --to -1h\n";

static const char FILTER_TEXT[] =
	"filters, the same for every verb\n"
	"  --container NAME   name, id, or the first 6 or more digits of the id\n"
	"  --image NAME       the container's image\n"
	"  --pid N  --tid N   process or thread, as the host counts them\n"
	"  --comm NAME        the process's command name\n"
	"  --exe PATH         the executable's path, or its last component\n"
	"  --user NAME        name or number\n"
	"  --unit NAME        systemd unit, with or without .service; but samples, events, objects, time and bytes are\n"
	"                     what flame, stacks and export rank by (see --type)\n"
	"  --cgroup PATH      that cgroup and those inside it\n"
	"  --lang NAME        python, go, java (or jvm), node, ruby, php, perl, dotnet, c++; or a runtime: python3.11\n"
	"  --host NAME        of several stores: that host's\n"
	"  --self             sonde's own processes too\n"
	"values of one kind are OR, kinds are AND; '!x' is NOT; '~re' is an extended regular expression\n"
	"a bare word is looked for in containers, units, commands and pids: the whole name, then a part of it\n"
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

/* "recording now: rec 3 (pid 812)", or what to do next. */
static void print_recorder(const char *store, FILE *out)
{
	struct select_recording *r = NULL;
	size_t n = 0, i;
	int rc = select_recordings(store, &r, &n, NULL);

	if (rc == -EACCES || rc == -EPERM)
		fprintf(out, "recorder: unknown, the store is not readable for you\n");
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
		{"sudo sonde doctor", "what this host can do, and what is missing"},
		{"sudo sonde record -d 10s", "record ten seconds of everything"},
		{"sonde flame", "the newest recording as a flame graph, in one HTML file"},
		{"sonde stacks -n 10", "the functions that used most, as text"},
	};
	const size_t n = ARRAY_SIZE(first);

	struct strbuf command cleanup_strbuf = STRBUF_INIT;
	int width = 26;

	fputs("sonde shows what this host is doing, down to the line of code.\n\n", out);
	for (size_t i = 0; i < 2 * n; i++) { /* first how wide, then the lines */
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
