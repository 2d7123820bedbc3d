/* SPDX-License-Identifier: Apache-2.0 */
/* sonde pstack: runs sonde-pstack, which reads the threads of this host as they are now. */
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"

struct pstack_args {
	struct option_list pid, container;
	bool kernel_threads, no_lines;
	uint64_t number;
};

/* clang-format off */
static const struct option PSTACK_OPTIONS[] = {
	{.name = "pid", .letter = 'p', .type = OPTION_LIST, .arg = "PID", .help = "only this process",
	 .offset = offsetof(struct pstack_args, pid)},
	{.name = "container", .type = OPTION_LIST, .arg = "NAME", .help = "only this container, by name or id",
	 .offset = offsetof(struct pstack_args, container)},
	{.name = "kernel-threads", .type = OPTION_FLAG, .help = "include kernel threads",
	 .offset = offsetof(struct pstack_args, kernel_threads)},
	{.name = "number", .letter = 'n', .type = OPTION_MOST, .arg = "N", .help = "how many threads, those of the first processes (default: all)",
	 .offset = offsetof(struct pstack_args, number)},
	{.name = "no-lines", .type = OPTION_FLAG, .help = "functions only, no source lines", .offset = offsetof(struct pstack_args, no_lines)},
	{0},
};
/* clang-format on */

static const char *const PSTACK_EXAMPLES[] = {
	"sudo sonde pstack -p 812",
	"sudo sonde pstack --container web",
	"sudo sonde pstack --json | jq -r '.rows[] | select(.state == \"uninterruptible\") | .comm'",
	NULL,
};

static size_t add_list(char **argv, size_t n, const char *name, const struct option_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		argv[n++] = (char *)name;
		argv[n++] = (char *)list->items[i];
	}
	return n;
}

static int pstack_run(struct verb_call *call, struct err *e)
{
	const struct pstack_args *a = call->args;
	cleanup_free char **argv = mem_array(2 * (a->pid.n + a->container.n) + 10, sizeof(*argv));
	char path[PATH_MAX], number[48];
	int rc = sibling_find("sonde-pstack", path, e);
	size_t n = 0;

	if (rc)
		return rc;
	argv[n++] = path;
	argv[n++] = (char *)"--store";
	argv[n++] = (char *)call->store;
	n = add_list(argv, n, "--pid", &a->pid);
	n = add_list(argv, n, "--container", &a->container);
	if (a->kernel_threads)
		argv[n++] = (char *)"--kernel-threads";
	if (a->number && a->number != OPTION_ALL) {
		snprintf(number, sizeof(number), "--number=%llu", (unsigned long long)a->number);
		argv[n++] = number;
	}
	if (a->no_lines)
		argv[n++] = (char *)"--no-lines";
	if (call->json)
		argv[n++] = (char *)"--json";
	if (call->quiet)
		argv[n++] = (char *)"--quiet";
	return helper_run(argv, &call->status, e);
}

const struct verb verb_pstack = {
	.name = "pstack",
	.summary = "show where threads wait right now, and for how long",
	.usage = "[-p PID] [--container NAME]",
	.examples = PSTACK_EXAMPLES,
	.options = PSTACK_OPTIONS,
	.args_size = sizeof(struct pstack_args),
	.uses = VERB_STORE | VERB_JSON | VERB_PASSES,
	.run = pstack_run,
};
