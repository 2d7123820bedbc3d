/* SPDX-License-Identifier: Apache-2.0 */
/* sonde help [VERB|range|filters] */
#include <errno.h>
#include <stdio.h>

#include "schema/base/cli/suggest.h"
#include "tools/cli/verb.h"
#include "tools/verbs/help.h"

static int help_run(struct verb_call *call, struct err *e)
{
	struct strbuf hint cleanup_strbuf = STRBUF_INIT;
	const struct verb *v;
	struct suggest near;

	if (call->json && !call->n_words)
		return help_json(NULL, stdout);
	if (!call->n_words) {
		help_all(stdout);
		return 0;
	}
	v = verb_find(call->words[0]);
	if (v && call->json)
		return help_json(v, stdout);
	if (v) {
		help_verb(v, stdout);
		return 0;
	}
	if (!help_topic(call->words[0], stdout))
		return 0;
	suggest_init(&near, call->words[0]);
	for (const struct verb *const *x = VERBS; *x; x++)
		suggest_add(&near, (*x)->name);
	suggest_add(&near, "range");
	suggest_add(&near, "filters");
	suggest_say(&near, &hint, "");
	err_set(e, -ENOENT, EXIT_USAGE, "no help on '%.100s'%s", call->words[0], strbuf_str(&hint));
	err_fix(e, "sonde help");
	return -ENOENT;
}

static const char *const EXAMPLES[] = {"sonde help flame", "sonde help range", "sonde help filters",
				       "sonde help --json", NULL};

const struct verb verb_help = {
	.name = "help",
	.summary = "show help on a verb, on time ranges or on filters",
	.usage = "[VERB|range|filters]",
	.examples = EXAMPLES,
	.uses = VERB_WORDS | VERB_JSON,
	.run = help_run,
};
