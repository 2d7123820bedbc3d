/* SPDX-License-Identifier: Apache-2.0 */
/* sonde symbolize: runs sonde-symbolize, which adds to the store what newly installed debug
 * information provides. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "schema/base/cleanup.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/record/symbolize.h"

struct symbolize_args {
	bool debuginfod;
	uint64_t number;
};

static const struct option SYMBOLIZE_OPTIONS[] = {
	{"debuginfod", 0, OPTION_FLAG, NULL,
	 "also ask the servers in $DEBUGINFOD_URLS for debug information missing here",
	 offsetof(struct symbolize_args, debuginfod)},
	{"number", 'n', OPTION_MOST, "N", "how many files to print (default: all)",
	 offsetof(struct symbolize_args, number)},
	{0},
};

static const char *const SYMBOLIZE_EXAMPLES[] = {
	"sudo apt-get install libc6-dbg && sudo sonde symbolize",
	"sudo DEBUGINFOD_URLS=https://debuginfod.debian.net sonde symbolize --debuginfod",
	NULL,
};

static int symbolize_run(struct verb_call *call, struct err *e)
{
	const struct symbolize_args *a = call->args;
	char path[PATH_MAX], number[48];
	char *argv[9] = {path, (char *)"--store", (char *)call->store};
	int n = 3, rc = sibling_find("sonde-symbolize", path, e);

	if (rc)
		return rc;
	if (a->debuginfod)
		argv[n++] = (char *)"--debuginfod";
	if (a->number && a->number != OPTION_ALL) {
		snprintf(number, sizeof(number), "--number=%llu", (unsigned long long)a->number);
		argv[n++] = number;
	}
	if (call->json)
		argv[n++] = (char *)"--json";
	if (call->quiet)
		argv[n++] = (char *)"--quiet";
	return helper_run(argv, &call->status, e);
}

int symbolize_check(struct err *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char path[PATH_MAX];

	if (urls && *urls)
		return sibling_find("sonde-symbolize", path, e);
	err_set(e, -EINVAL, EXIT_USAGE, "--debuginfod needs a server: DEBUGINFOD_URLS is not set");
	err_fix(e, "sudo DEBUGINFOD_URLS=https://debuginfod.debian.net sonde record --debuginfod");
	return -EINVAL;
}

int symbolize_quietly(const char *store, struct err *e)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	char path[PATH_MAX];
	char *argv[] = {path,
			(char *)"--store",
			(char *)store,
			(char *)"--debuginfod",
			(char *)"--quiet",
			(char *)"--json",
			NULL};
	int status = 0, rc = sibling_find("sonde-symbolize", path, e);

	if (!rc)
		rc = helper_output(argv, &out, &status, e);
	if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status)))
		rc = err_set(
			e, -EIO, EXIT_RUNTIME,
			"sonde-symbolize failed (see above); the recording itself is complete");
	return rc;
}

const struct verb verb_symbolize = {
	.name = "symbolize",
	.summary = "add names and lines to stored data, from debug packages installed since",
	.usage = "[--debuginfod]",
	.examples = SYMBOLIZE_EXAMPLES,
	.options = SYMBOLIZE_OPTIONS,
	.args_size = sizeof(struct symbolize_args),
	.uses = VERB_STORE | VERB_JSON | VERB_PASSES | VERB_WRITES,
	.run = symbolize_run,
};
