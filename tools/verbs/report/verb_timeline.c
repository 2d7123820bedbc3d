/* SPDX-License-Identifier: Apache-2.0 */
/* sonde timeline: resource use over time, spikes, and the command that shows their stacks
 * (tools/timeline/timeline.h). */
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tools/cli/verb.h"
#include "tools/print/term.h"
#include "tools/select/select.h"
#include "tools/timeline/timeline_print.h"

#define DEFAULT_SPIKES 5
#define DEFAULT_GROUPS 5
#define JSON_GROUPS    20
#define DEFAULT_LINES  12
#define JSON_COLUMNS   360

struct timeline_args {
	uint64_t rows;
	const char *by, *of;
	bool events;
};

/* clang-format off */
static const struct option TIMELINE_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many spikes (default 5), or with --of how many strips (default 12; 0: all)", offsetof(struct timeline_args, rows)},
	{"of", 0, OPTION_STRING, "WHAT", "cpu, mem, io, net, pressure, disk, gpu, jvm, gc, requests, errors, latency", offsetof(struct timeline_args, of)},
	{"by", 0, OPTION_STRING, "WHAT", "container, command or process (default: containers, and commands outside)",
	 offsetof(struct timeline_args, by)},
	{"events", 0, OPTION_FLAG, NULL, "show all events, not only the first few; in JSON the newest 100", offsetof(struct timeline_args, events)},
	{0},
};
/* clang-format on */

static const char *const TIMELINE_EXAMPLES[] = {
	"sonde timeline --last 24h",
	"sonde timeline --from 03:00 --to 04:00 --by process",
	"sonde timeline web --last 1h --json",
	"sonde timeline --of mem --last 24h",
	NULL,
};

static int by_of(const char *text, enum timeline_by *by, struct err *e)
{
	static const struct {
		const char *name;
		enum timeline_by by;
	} words[] = {
		{"container", TIMELINE_BY_CONTAINER},
		{"command", TIMELINE_BY_COMMAND},
		{"process", TIMELINE_BY_PROCESS},
	};

	*by = TIMELINE_BY_BOTH;
	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i].name))
			*by = words[i].by;
	if (text && *by == TIMELINE_BY_BOTH)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--by must be container, command or process, not '%.100s'", text);
	return 0;
}

static bool has_blocks(void)
{
	return term_is_tty(stdout) && !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static int print(const struct verb_call *call, struct timeline_view *v, struct err *e)
{
	int ret = 0;

	v->width = term_width(stdout);
	v->unicode = has_blocks();
	if (call->json)
		ret = timeline_json(v, stdout);
	else
		timeline_text(v, stdout);
	return verb_flush(ret, e);
}

/* At most as many columns as the range has seconds. */
static int used_run(const struct verb_call *call, struct err *e)
{
	const struct timeline_args *a = call->args;
	const size_t seconds =
		(size_t)((call->sel->to_ns - call->sel->from_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
	size_t columns = call->json ? JSON_COLUMNS : timeline_columns(term_width(stdout)),
	       n = a->rows ? (size_t)a->rows : DEFAULT_LINES;
	struct timeline_used u;
	int ret =
		timeline_used_make(call->sel, a->of, columns < seconds ? columns : seconds, &u, e);

	if (ret)
		return ret;
	if (call->json)
		ret = timeline_used_json(&u, n, stdout);
	else
		timeline_used_text(&u, n, has_blocks(), stdout);
	timeline_used_release(&u);
	return verb_flush(ret, e);
}

static int timeline_run(struct verb_call *call, struct err *e)
{
	const struct timeline_args *a = call->args;
	struct timeline_view v = {.groups = call->json ? JSON_GROUPS : DEFAULT_GROUPS};
	struct timeline_spike *spikes;
	struct timeline *t = NULL;
	enum timeline_by by;
	int ret = by_of(a->by, &by, e);

	if (!ret && a->of && strcmp(a->of, "cpu"))
		return used_run(call, e);
	if (!ret)
		ret = timeline_make(call->sel, by, &t, e);
	if (ret)
		return ret;
	spikes = timeline_spikes(t, &v.n_spikes);
	v.t = t;
	v.all_events = a->events;
	v.spikes = spikes;
	v.shown_spikes = a->rows ? (size_t)a->rows : DEFAULT_SPIKES;
	v.shown_spikes = v.shown_spikes < v.n_spikes ? v.shown_spikes : v.n_spikes;
	v.store = call->hint_store;
	ret = print(call, &v, e);
	free(spikes);
	timeline_free(t);
	return ret;
}

const struct verb verb_timeline = {
	.name = "timeline",
	.summary = "show resource use over time, its spikes and who caused them",
	.usage = "[WHAT] [-n N] [--by WHAT] [--of WHAT] [--events]",
	.examples = TIMELINE_EXAMPLES,
	.options = TIMELINE_OPTIONS,
	.args_size = sizeof(struct timeline_args),
	.uses = VERB_SELECT | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = timeline_run,
};
