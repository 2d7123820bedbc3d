/* SPDX-License-Identifier: Apache-2.0 */
/* sonde probes: runs sonde-probe, which lists what this host offers for `sonde record --probe`. */
#include <errno.h>

#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"

static const char *const PROBES_EXAMPLES[] = {
	"sudo sonde probes",
	"sudo sonde probes openat",
	"sudo sonde probes /usr/bin/python3.11 gc__",
	NULL,
};

static int probes_run(struct verb_call *call, struct err *e)
{
	char path[PATH_MAX], *argv[6];
	int rc = sibling_find("sonde-probe", path, e);
	size_t n = 0;

	if (rc)
		return rc;
	if (call->n_words > 2) {
		err_set(e, -EINVAL, EXIT_USAGE, "probes takes a word, or a file and a word");
		err_fix(e, "sonde probes openat");
		return -EINVAL;
	}
	argv[n++] = path;
	argv[n++] = (char *)"--list";
	if (call->json)
		argv[n++] = (char *)"--json";
	for (size_t i = 0; i < call->n_words; i++)
		argv[n++] = call->words[i];
	argv[n] = NULL;
	return helper_run(argv, &call->status, e);
}

const struct verb verb_probes = {
	.name = "probes",
	.summary = "list what probes can be set on, and what a hit costs here",
	.usage = "[WORD | FILE [WORD]]",
	.examples = PROBES_EXAMPLES,
	.uses = VERB_JSON | VERB_WORDS | VERB_PASSES,
	.run = probes_run,
};
