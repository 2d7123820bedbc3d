/* SPDX-License-Identifier: Apache-2.0 */
/* sonde serve: executes sonde-serve, which shows the store in a browser. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"
#include "tools/cli/verb.h"

struct serve_args {
	const char *listen, *token_file;
	struct option_list host;
	int64_t timeout_ns;
	uint64_t memory_mb, questions;
};

/* clang-format off */
static const struct option SERVE_OPTIONS[] = {
	{"listen", 'l', OPTION_STRING, "ADDRESS", "127.0.0.1:PORT, [::1]:PORT, unix:PATH (default 127.0.0.1:7766); others need a token",
	 offsetof(struct serve_args, listen)},
	{"token-file", 0, OPTION_STRING, "FILE", "clients must send the token in this file", offsetof(struct serve_args, token_file)},
	{"host", 0, OPTION_LIST, "NAME", "accept this host name too, e.g. that of a reverse proxy", offsetof(struct serve_args, host)},
	{"timeout", 0, OPTION_DURATION, "TIME", "time limit of a request (default 30s)", offsetof(struct serve_args, timeout_ns)},
	{"memory", 0, OPTION_UINT, "MB", "memory limit of a request (default 768)", offsetof(struct serve_args, memory_mb)},
	{"questions", 0, OPTION_UINT, "N", "how many requests at a time (default 4)", offsetof(struct serve_args, questions)},
	{0},
};
/* clang-format on */

static const char *const SERVE_EXAMPLES[] = {
	"sonde serve",
	"sonde serve --listen unix:/run/user/1000/sonde.sock",
	"sonde serve --listen 192.168.1.5:7766 --token-file token",
	NULL,
};

static void number_add(const char **argv, int *n, const char *option, uint64_t value, char text[24])
{
	if (!value)
		return;
	snprintf(text, 24, "%llu", (unsigned long long)value);
	argv[(*n)++] = option;
	argv[(*n)++] = text;
}

static int serve_run(struct verb_call *call, struct err *e)
{
	const struct serve_args *a = call->args;
	char path[PATH_MAX], seconds[24], memory[24], questions[24];
	const char **argv = mem_array(18 + 2 * a->host.n, sizeof(*argv));
	int n = 1, rc = sibling_find("sonde-serve", path, e);

	argv[0] = path;
	if (call->hint_store) {
		argv[n++] = "--store";
		argv[n++] = call->store;
	}
	argv[n++] = "--watch";
	argv[n++] = call->store;
	if (a->listen) {
		argv[n++] = "--listen";
		argv[n++] = a->listen;
	}
	if (a->token_file) {
		argv[n++] = "--token-file";
		argv[n++] = a->token_file;
	}
	for (size_t i = 0; i < a->host.n; i++) {
		argv[n++] = "--host";
		argv[n++] = a->host.items[i];
	}
	number_add(argv, &n, "--timeout",
		   (uint64_t)((a->timeout_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC), seconds);
	number_add(argv, &n, "--memory", a->memory_mb, memory);
	number_add(argv, &n, "--questions", a->questions, questions);
	if (!rc) {
		execv(path, (char *const *)(uintptr_t)argv);
		rc = err_set(e, -errno, EXIT_RUNTIME, "cannot start %s: %s", path, strerror(errno));
	}
	free(argv);
	return rc;
}

const struct verb verb_serve = {
	.name = "serve",
	.summary = "show this host in a browser, live and in the past",
	.usage = "[--listen ADDRESS] [--token-file FILE]",
	.examples = SERVE_EXAMPLES,
	.more = "Read-only. /api/v1/VERB?name=value answers like sonde VERB --json. Ctrl-C stops it.",
	.options = SERVE_OPTIONS,
	.args_size = sizeof(struct serve_args),
	.uses = VERB_STORE,
	.run = serve_run,
};
