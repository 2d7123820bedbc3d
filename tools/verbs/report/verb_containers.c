/* SPDX-License-Identifier: Apache-2.0 */
/* sonde containers: containers of a range (tools/processes/process_report.h). */
#include "tools/processes/process_report.h"

static const char *const EXAMPLES[] = {
	"sonde containers --last 24h",
	"sonde containers --at 03:10 --json",
	"sonde containers --last 1h --sort oom",
	NULL,
};

static int containers_run(struct verb_call *call, struct err *e)
{
	return process_report_run(call, PROCESS_ROWS_BY_CONTAINER, e);
}

const struct verb verb_containers = {
	.name = "containers",
	.summary = "list containers of any time; processes outside of containers are one row",
	.usage = "[WHAT] [--at TIME | --last 1h] [-n N] [--sort KEY]",
	.examples = EXAMPLES,
	.options = PROCESS_REPORT_CONTAINER_OPTIONS,
	.args_size = sizeof(struct process_report_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = containers_run,
};
