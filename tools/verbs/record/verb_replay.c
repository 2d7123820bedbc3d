/* SPDX-License-Identifier: Apache-2.0 */
/* sonde replay: runs sonde-replay, which finds the requests in a packet capture. */
#include <errno.h>
#include <stdio.h>

#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"

struct replay_args {
	bool requests;
	const char *payload;
	uint64_t limit;
	bool all;
	const char *output;
};

/* clang-format off */
static const struct option REPLAY_OPTIONS[] = {
	{.name = "requests", .letter = 'r', .type = OPTION_FLAG, .help = "print one line per request instead of the table",
	 .offset = offsetof(struct replay_args, requests)},
	{.name = "limit", .letter = 'n', .type = OPTION_UINT, .arg = "N", .help = "how many rows of the table (default 50)",
	 .offset = offsetof(struct replay_args, limit)},
	{.name = "all", .type = OPTION_FLAG, .help = "print all rows of the table", .offset = offsetof(struct replay_args, all)},
	{.name = "payload", .type = OPTION_STRING, .arg = "HOW",
	 .help = "masked (default): no user data; full: paths, keys, statements as sent; none: only commands",
	 .offset = offsetof(struct replay_args, payload)},
	{.name = "output", .letter = 'o', .type = OPTION_STRING, .arg = "STORE",
	 .help = "also add the requests, summed per second, to this store (created if missing)",
	 .offset = offsetof(struct replay_args, output)},
	{0},
};
/* clang-format on */

static const char *const REPLAY_EXAMPLES[] = {
	"sonde replay x.pcap",
	"sonde replay x.pcap --requests --json | jq -r 'select(.latency_ns > 1e8) | .operation'",
	"sonde replay x.pcap -o /tmp/other && sonde sql --store /tmp/other 'SELECT * FROM requests ORDER BY max_ns DESC LIMIT 10'",
	NULL,
};

static int replay_run(struct verb_call *call, struct err *e)
{
	const struct replay_args *a = call->args;
	char path[PATH_MAX], limit[24];
	char *argv[14] = {path};
	int n = 1, rc;

	if (call->n_words != 1) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"name one capture file of tcpdump or Wireshark (pcap, pcapng)");
		err_fix(e, "tcpdump -i any -w x.pcap, then: sonde replay x.pcap");
		return -EINVAL;
	}
	rc = sibling_find("sonde-replay", path, e);
	if (rc)
		return rc;
	if (a->limit || a->all) {
		snprintf(limit, sizeof(limit), "%llu", a->all ? 0 : (unsigned long long)a->limit);
		argv[n++] = (char *)"--limit";
		argv[n++] = limit;
	}
	if (a->payload) {
		argv[n++] = (char *)"--payload";
		argv[n++] = (char *)a->payload;
	}
	if (a->output) {
		argv[n++] = (char *)"--store";
		argv[n++] = (char *)a->output;
	}
	if (a->requests)
		argv[n++] = (char *)"--requests";
	if (call->json)
		argv[n++] = (char *)"--json";
	if (call->quiet)
		argv[n++] = (char *)"--quiet";
	argv[n++] = (char *)"--";
	argv[n++] = call->words[0];
	return helper_run(argv, &call->status, e);
}

const struct verb verb_replay = {
	.name = "replay",
	.summary = "show the requests in a packet capture: operations, errors, latency",
	.usage = "FILE [--requests] [--payload HOW] [-o STORE]",
	.examples = REPLAY_EXAMPLES,
	.options = REPLAY_OPTIONS,
	.args_size = sizeof(struct replay_args),
	.uses = VERB_JSON | VERB_PASSES | VERB_WORDS,
	.run = replay_run,
};
