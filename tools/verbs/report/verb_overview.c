/* SPDX-License-Identifier: Apache-2.0 */
/* sonde overview, and sonde without a verb: what this host did in the last minutes, and whether
 * anything is wrong (tools/overview/overview.h). */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/verb.h"
#include "tools/overview/overview.h"
#include "tools/print/term.h"
#include "tools/select/select.h"

#define JSON_ROWS 20

struct overview_args {
	uint64_t rows;
};

/* clang-format off */
static const struct option OVERVIEW_OPTIONS[] = {
	{"number", 'n', OPTION_MOST, "N", "how many containers and commands in JSON (default 20; 0: all)", offsetof(struct overview_args, rows)},
	{0},
};
/* clang-format on */

static const char *const OVERVIEW_EXAMPLES[] = {"sonde", "sonde overview --at 03:10",
						"sonde overview --last 1h --json", NULL};

/* Of the terminal; 0: no terminal. */
static unsigned lines_of_terminal(void)
{
	struct winsize size;

	return term_is_tty(stdout) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? size.ws_row : 0;
}

static int overview_run(struct verb_call *call, struct err *e)
{
	const struct overview_args *a = call->args;
	struct overview o;
	int rc = overview_read(call->store, call->select, &o, e);

	if (!rc && call->json)
		rc = overview_json(&o, a->rows ? (size_t)a->rows : JSON_ROWS);
	else if (!rc)
		overview_print(&o, call, lines_of_terminal());
	overview_release(&o);
	return verb_flush(rc, e);
}

const struct verb verb_overview = {
	.name = "overview",
	.summary = "see what this host does, and whether anything is wrong, on one screen",
	.usage = "[--last TIME|--at T]",
	.examples = OVERVIEW_EXAMPLES,
	.options = OVERVIEW_OPTIONS,
	.args_size = sizeof(struct overview_args),
	.more = "`sonde` without a verb is the same, of the last 15 minutes.",
	.uses = VERB_SELECT | VERB_SELECT_LATER | VERB_RANGE_ONLY | VERB_JSON | VERB_READS,
	.run = overview_run,
};
