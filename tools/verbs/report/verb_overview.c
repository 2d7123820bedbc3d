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
	struct overview o;
	int rc = overview_read(call->store, call->select, &o, e);

	if (!rc && call->json)
		rc = overview_json(&o);
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
	.more = "`sonde` without a verb is the same, of the last 15 minutes.",
	.uses = VERB_SELECT | VERB_SELECT_LATER | VERB_RANGE_ONLY | VERB_JSON | VERB_READS,
	.run = overview_run,
};
