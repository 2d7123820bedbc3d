/* SPDX-License-Identifier: Apache-2.0 */
/* sonde seal: runs sonde-seal, which archives finished segments. */
#include "schema/base/array.h"
#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"

struct seal_args {
	bool idle;
	const char *keep, *room, *plain, *fine;
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{.name = "plain", .type = OPTION_STRING, .arg = "SIZE", .help = "leave the newest segments as they are, up to this many bytes (default 0)",
	 .offset = offsetof(struct seal_args, plain)},
	{.name = "keep", .type = OPTION_STRING, .arg = "TIME", .help = "leave segments finished less than this ago, up to twice as many bytes (default 0)",
	 .offset = offsetof(struct seal_args, keep)},
	{.name = "fine", .type = OPTION_STRING, .arg = "TIME", .help = "reduce use and wait data older than this to one-minute sums (default 0: never)",
	 .offset = offsetof(struct seal_args, fine)},
	{.name = "room", .type = OPTION_STRING, .arg = "SIZE",
	 .help = "size limit of a file being written (default: none); leave larger ones for later", .offset = offsetof(struct seal_args, room)},
	{.name = "idle", .type = OPTION_FLAG, .help = "work only when nothing else needs the CPU or the disk",
	 .offset = offsetof(struct seal_args, idle)},
	{0},
};
/* clang-format on */

static const char *const EXAMPLES[] = {"sudo sonde seal", "sudo sonde seal --plain 100M --keep 2h",
				       NULL};

static int seal_run(struct verb_call *call, struct err *e)
{
	const struct seal_args *a = call->args;
	const struct {
		const char *flag, *value;
		bool given;
	} flags[] = {
		{"--idle", NULL, a->idle},      {"--keep", a->keep, a->keep},
		{"--room", a->room, a->room},   {"--plain", a->plain, a->plain},
		{"--fine", a->fine, a->fine},   {"--json", NULL, call->json},
		{"--quiet", NULL, call->quiet},
	};
	char path[PATH_MAX];
	char *argv[20] = {path, (char *)"--store", (char *)call->store};
	int n = 3, rc = sibling_find("sonde-seal", path, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
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
	.summary = "archive finished segments, at about a fifth of their size",
	.usage = "[--plain SIZE] [--keep TIME]",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct seal_args),
	.uses = VERB_STORE | VERB_JSON | VERB_PASSES | VERB_WRITES,
	.run = seal_run,
};
