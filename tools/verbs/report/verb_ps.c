/* SPDX-License-Identifier: Apache-2.0 */
/* sonde ps: processes of a range (tools/processes/process_report.h). */
#include "tools/processes/process_report.h"

static const char *const EXAMPLES[] = {
	"sonde ps --at 03:10",
	"sonde ps --last 1h --sort start --json",
	NULL,
};

static int ps_run(struct verb_call *call, struct err *e)
{
	return process_report_run(call, PROCESS_ROWS_BY_PROCESS, e);
}

const struct verb verb_ps = {
	.name = "ps",
	.summary = "list processes of any time, with their CPU use and hottest function",
	.usage = "[WHAT] [--at TIME | --last 1h] [-n N] [--sort KEY]",
	.examples = EXAMPLES,
	.options = PROCESS_REPORT_OPTIONS,
	.args_size = sizeof(struct process_report_args),
	.uses = VERB_SELECT | VERB_HOSTS | VERB_SELECT_WORD | VERB_JSON | VERB_PAGES,
	.run = ps_run,
};
