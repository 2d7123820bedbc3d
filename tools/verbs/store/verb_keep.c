/* SPDX-License-Identifier: Apache-2.0 */
/* keep: asks sonded to put the last minutes of its flight ring into the store
 * (supervisor/retention/keeper.h). */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/base/clock.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"
#include "tools/record/daemon.h"

struct keep_args {
	int64_t last_ns;
	const char *why;
};

/* clang-format off */
static const struct option KEEP_OPTIONS[] = {
	{"last", 0, OPTION_DURATION, "TIME", "how far back (default: 10m, and the next 30 s)", offsetof(struct keep_args, last_ns), .min = NSEC_PER_SEC},
	{"why", 0, OPTION_STRING, "TEXT", "the reason, which events and status show", offsetof(struct keep_args, why)},
	{0},
};
/* clang-format on */

static int keep_run(struct verb_call *call, struct err *e)
{
	const struct keep_args *a = call->args;
	json_t *answer = NULL;
	int64_t left_ns;
	int rc = daemon_ask(call->store,
			    json_pack("{s:s, s:I, s:o}", "do", "keep", "last_ns",
				      (json_int_t)a->last_ns, "why",
				      json_text(a->why ? a->why : "")),
			    &answer, e);

	if (rc == -ENOENT && !e->fix[0])
		err_fix(e, "sudo sonde up    records continuously");
	if (rc)
		return rc;
	left_ns = json_integer_value(json_object_get(answer, "to_ns")) - clock_utc_ns();
	json_decref(answer);
	printf("kept in about %lld s: sonde events, sonde status\n",
	       (long long)((left_ns > 0 ? left_ns : 0) / NSEC_PER_SEC + 15));
	return verb_flush(0, e);
}

static const char *const KEEP_EXAMPLES[] = {
	"sudo sonde keep --why 'the shop was slow'",
	"sonde check -q || sudo sonde keep --why 'a check fired'", NULL};

const struct verb verb_keep = {
	.name = "keep",
	.summary = "keep the last minutes in seconds, of the flight ring",
	.usage = "[--last TIME] [--why TEXT]",
	.options = KEEP_OPTIONS,
	.args_size = sizeof(struct keep_args),
	.examples = KEEP_EXAMPLES,
	.uses = VERB_STORE,
	.run = keep_run,
};
