/* SPDX-License-Identifier: Apache-2.0 */
/* sonde seal: runs sonde-seal, which packs the finished segments of a day into one file. */
#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"

struct seal_args {
	bool today, idle;
	const char *grace, *min, *room, *plain;
};

static const struct option OPTIONS[] = {
	{.name = "today", .type = OPTION_FLAG, .help = "the day that is not over, too", .offset = offsetof(struct seal_args, today)},
	{.name = "grace", .type = OPTION_STRING, .arg = "TIME",
	 .help = "how long packed segments stay for those who read them just now (default 60s)", .offset = offsetof(struct seal_args, grace)},
	{.name = "min", .type = OPTION_STRING, .arg = "N",
	 .help = "of a day that is not over, only where so many segments are finished (default 1)", .offset = offsetof(struct seal_args, min)},
	{.name = "room", .type = OPTION_STRING, .arg = "SIZE",
	 .help = "the file being made may take so much (default: any); the rest is left for later", .offset = offsetof(struct seal_args, room)},
	{.name = "plain", .type = OPTION_STRING, .arg = "SIZE",
	 .help = "of segments that are packed by themselves (they hold waits or heaps), the newest stay rows up to this (default 0)",
	 .offset = offsetof(struct seal_args, plain)},
	{.name = "idle", .type = OPTION_FLAG, .help = "pack only when nobody else wants the CPU or the disk",
	 .offset = offsetof(struct seal_args, idle)},
	{0},
};

static const char *const EXAMPLES[] = {"sudo sonde seal", "sudo sonde seal --today", NULL};

static int seal_run(struct verb_call *call, struct err *e)
{
	const struct seal_args *a = call->args;
	const struct { const char *flag, *value; bool given; } flags[] = {
		{"--today", NULL, a->today}, {"--idle", NULL, a->idle}, {"--grace", a->grace, a->grace},
		{"--min", a->min, a->min}, {"--room", a->room, a->room}, {"--plain", a->plain, a->plain}, {"--json", NULL, call->json}, {"--quiet", NULL, call->quiet},
	};
	char path[PATH_MAX];
	char *argv[20] = {path, (char *)"--store", (char *)call->store};
	int n = 3, rc = sibling_find("sonde-seal", path, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].given)
			continue;
		argv[n++] = (char *)flags[i].flag;
		if (flags[i].value)
			argv[n++] = (char *)flags[i].value;
	}
	return helper_run(argv, &call->status, e);
}

const struct verb verb_seal = {
	.name = "seal",
	.summary = "pack the finished segments of the store into one file a day",
	.usage = "[--today]",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct seal_args),
	.uses = VERB_STORE | VERB_JSON | VERB_WRITES,
	.run = seal_run,
};
