/* SPDX-License-Identifier: Apache-2.0 */
/* sonde completion: prints the script that a shell loads, and answers the script's requests. */
#include <errno.h>
#include <string.h>

#include "schema/base/array.h"
#include "tools/cli/verb.h"
#include "tools/verbs/complete.h"
#include "tools/verbs/completion.h" /* generated: COMPLETIONS */

static const char *const EXAMPLES[] = {
	"source <(sonde completion bash)",
	"sonde completion fish > ~/.config/fish/completions/sonde.fish",
	NULL,
};

static int completion_run(struct verb_call *call, struct err *e)
{
	if (call->n_words && !strcmp(call->words[0], "words")) {
		complete_print(call->words + 1, call->n_words - 1, stdout);
		return 0;
	}
	for (size_t i = 0; call->n_words == 1 && i < ARRAY_SIZE(COMPLETIONS); i++)
		if (!strcmp(COMPLETIONS[i].shell, call->words[0])) {
			fputs(COMPLETIONS[i].text, stdout);
			return 0;
		}
	err_set(e, -EINVAL, EXIT_USAGE, "name a shell: bash, zsh or fish");
	err_fix(e, "source <(sonde completion bash)");
	return -EINVAL;
}

const struct verb verb_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell: bash, zsh or fish",
	.usage = "bash | zsh | fish",
	.examples = EXAMPLES,
	.more = "`make install` puts these scripts where the shells look for them.",
	.uses = VERB_WORDS,
	.run = completion_run,
};
