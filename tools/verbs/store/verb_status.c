/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status: what is recording, the last recordings with their losses and cost, and what the store
 * contains. Users paste this into bug reports.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/cli/verb.h"
#include "tools/record/daemon.h"
#include "tools/record/status.h"

#define SHOWN      5
#define SHOWN_MOST 20

struct status_args {
	uint64_t n;
	bool check, log;
};

#define LOG_LINES 50

/* For --log: what sonded and its loaders said last. */
static int log_print(const struct verb_call *call, uint64_t n, struct err *e)
{
	json_t *answer, *line;
	size_t i;
	int rc = daemon_ask(call->store,
			    json_pack("{s:s, s:I}", "do", "logs", "n",
				      (json_int_t)(n > 100000 ? 100000 :
						   n          ? n :
								LOG_LINES)),
			    &answer, e);

	if (rc == -ENOENT)
		err_fix(e, "for older messages: journalctl -u sonded    or    less %s/sonded.log",
			call->store);
	if (rc)
		return rc;
	json_array_foreach (json_object_get(answer, "lines"), i, line)
		puts(json_string_value(line));
	json_decref(answer);
	return 0;
}

/* For --check: at least one family is recording. */
static int is_recording(const char *store, const json_t *daemon, struct err *e)
{
	const json_t *service;
	size_t i;

	json_array_foreach (json_object_get(daemon, "services"), i, service) {
		const char *name = json_string_value(json_object_get(service, "name")),
			   *state = json_string_value(json_object_get(service, "state"));

		if (name && state && strcmp(name, "maps") && !strcmp(state, "running"))
			return 0;
	}
	err_set(e, -ENOENT, EXIT_NOTHING,
		daemon ? "sonded is running for %s but records nothing" :
			 "no sonded is running for the store %s",
		store);
	err_fix(e, daemon ? "sonde status" : "sudo sonde up");
	return -ENOENT;
}

/* All that recorded while the newest did, as the families of sonded do: what sonde costs is their
 * sum. recs: the oldest first. */
static size_t usual(const struct select_recording *recs, size_t n)
{
	size_t k = n > 0;

	while (k < n && k < SHOWN_MOST && recs[n - 1 - k].to_ns > recs[n - 1].from_ns)
		k++;
	return k > SHOWN ? k : SHOWN;
}

static int status_run(struct verb_call *call, struct err *e)
{
	const struct status_args *a = call->args;
	size_t want, n = 0, n_recs = 0;
	struct select_recording *recs = NULL;
	struct status_store about = {0};
	json_t *daemon = NULL;
	struct status_facts *f = NULL;
	bool begun; /* or sonded runs but has stored nothing yet, which is worth showing */
	int rc;

	if (a->log)
		return log_print(call, a->n, e);
	(void)daemon_ask(call->store, json_pack("{s:s}", "do", "status"), &daemon,
			 NULL); /* there may be no sonded */
	rc = status_store_fill(&about, call->store, e);
	begun = rc != -ENOENT || !daemon;
	if (rc == 0)
		rc = select_recordings_of(about.segments, about.n_segments, &recs, &n_recs, e);
	else if (!begun)
		rc = 0;
	if (rc == 0) {
		want = a->n ? a->n : usual(recs, n_recs);
		n = n_recs < want ? n_recs : want;
		f = mem_array(n, sizeof(*f));
		for (size_t i = 0; rc == 0 && i < n; i++)
			rc = status_fill(&f[i], &about, &recs[n_recs - 1 - i], e);
	}
	if (rc == 0 && call->json)
		rc = status_print_json(call->store, &about, f, n, n_recs, daemon);
	if (rc == 0 && !call->json && daemon)
		daemon_print(daemon);
	if (rc == 0 && !call->json)
		status_print(call->store, &about, f, n);
	if (rc == 0 && a->check)
		rc = is_recording(call->store, daemon, e);
	for (size_t i = 0; f && i < n; i++)
		status_release(&f[i]);
	free(f);
	json_decref(daemon);
	select_recordings_free(recs, n_recs);
	store_segments_close(about.segments, about.n_segments);
	free(about.aside);
	return rc;
}

/* clang-format off */
static const struct option OPTIONS[] = {
	{.name = "number", .letter = 'n', .type = OPTION_MOST, .arg = "N", .help = "show the last N recordings (default 5, or all that record now; 0: all)",
	 .offset = offsetof(struct status_args, n)},
	{.name = "log", .type = OPTION_FLAG, .help = "show what sonded and its loaders logged last (-n: lines; default 50, at most 500)",
	 .offset = offsetof(struct status_args, log)},
	{.name = "check", .type = OPTION_FLAG, .help = "exit with 4 unless sonded is recording (for health checks)",
	 .offset = offsetof(struct status_args, check)},
	{0},
};
/* clang-format on */

static const char *const EXAMPLES[] = {
	"sonde status",
	"sonde status -n 20",
	"sonde status --json | jq '.rows[0].lost'",
	"sonde status --log -n 500 | grep level=warn",
	"sonde status --check >/dev/null && echo records",
	NULL,
};

const struct verb verb_status = {
	.name = "status",
	.summary = "show what is recording, what was lost, what it costs, and what the store holds",
	.usage = "",
	.examples = EXAMPLES,
	.options = OPTIONS,
	.args_size = sizeof(struct status_args),
	.uses = VERB_STORE | VERB_JSON | VERB_PAGES,
	.run = status_run,
};
