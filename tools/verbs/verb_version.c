/* SPDX-License-Identifier: Apache-2.0 */
/* sonde version */
#include <sqlite3.h>
#include <stdio.h>

#include "schema/base/version.h"
#include "tools/cli/verb.h"
#include "tools/print/json.h"

static int version_run(struct verb_call *call, struct err *e)
{
	json_t *out;

	(void)e;
	if (!call->json) {
		printf("sonde %s (sqlite %s)\n", SONDE_VERSION, sqlite3_libversion());
		return 0;
	}
	out = json_envelope("version", 0, 0);
	json_array_append_new(json_rows(out), json_pack("{s:s, s:s}", "version", SONDE_VERSION,
							"sqlite", sqlite3_libversion()));
	return json_print(out, stdout, 0);
}

static const char *const EXAMPLES[] = {"sonde version", "sonde version --json", NULL};

const struct verb verb_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "",
	.examples = EXAMPLES,
	.uses = VERB_JSON,
	.run = version_run,
};
