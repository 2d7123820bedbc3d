/* SPDX-License-Identifier: Apache-2.0 */
/* sonde prune: runs sonde-prune, which deletes the oldest segments until the store fits its
 * budget. */
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"

struct prune_args {
	bool dry_run;
	const char *budget, *reserve, *age, *keep_days, *fine;
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{.name = "dry-run", .letter = 'n', .type = OPTION_FLAG, .help = "print what would be deleted, delete nothing",
	 .offset = offsetof(struct prune_args, dry_run)},
	{.name = "budget", .type = OPTION_STRING, .arg = "SIZE",
	 .help = "size limit of the whole store (default: 2G, or 5 % of the disk if that is less)",
	 .offset = offsetof(struct prune_args, budget)},
	{.name = "reserve", .type = OPTION_STRING, .arg = "SIZE",
	 .help = "free space to leave on its disk (default: 512M, or 5 %)", .offset = offsetof(struct prune_args, reserve)},
	{.name = "age", .type = OPTION_STRING, .arg = "TIME", .help = "delete segments older than this (default 14d)",
	 .offset = offsetof(struct prune_args, age)},
	{.name = "keep-days", .type = OPTION_STRING, .arg = "N",
	 .help = "always keep the newest N days that have data, however old (default 2)", .offset = offsetof(struct prune_args, keep_days)},
	{.name = "fine", .type = OPTION_STRING, .arg = "TIME",
	 .help = "first reduce archives older than this to one-minute sums (default 1d, 0: never)", .offset = offsetof(struct prune_args, fine)},
	{0},
};
/* clang-format on */

static const char *const EXAMPLES[] = {
	"sonde prune --dry-run",
	"sudo sonde prune --budget 500M",
	"sudo sonde prune --age 12h --keep-days 0",
	NULL,
};

static int prune_run(struct verb_call *call, struct err *e)
{
	const struct prune_args *a = call->args;
	const char *const given[][2] = {{"--budget", a->budget},
					{"--reserve", a->reserve},
					{"--age", a->age},
					{"--keep-days", a->keep_days},
					{"--fine", a->fine}};
	char path[PATH_MAX];
	char *argv[18] = {path, (char *)"--store", (char *)call->store};
	int n = 3, rc = sibling_find("sonde-prune", path, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		if (!given[i][1])
			continue;
		argv[n++] = (char *)given[i][0];
		argv[n++] = (char *)given[i][1];
	}
	if (a->dry_run)
		argv[n++] = (char *)"--dry-run";
	if (call->json)
		argv[n++] = (char *)"--json";
	if (call->quiet)
		argv[n++] = (char *)"--quiet";
	return helper_run(argv, &call->status, e);
}

const struct verb verb_prune = {
	.name = "prune",
	.summary = "delete the oldest segments until the store fits its budget",
	.usage = "[--dry-run] [--budget SIZE] [--age TIME] [--keep-days N]",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct prune_args),
	.uses = VERB_STORE | VERB_JSON | VERB_PASSES | VERB_WRITES,
	.run = prune_run,
};
