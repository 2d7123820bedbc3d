/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs, and the groups of the help. */
#include <string.h>

#include "tools/cli/verb.h"
#include "tools/print/schema/jsonschema.h"
#include "tools/select/select.h"
#include "tools/verbs/help.h"

/* clang-format off */
const struct verb *const VERBS[] = {
	&verb_overview, &verb_top, &verb_ps, &verb_containers, &verb_timeline, &verb_events, &verb_logs, &verb_requests, &verb_net, &verb_disk, &verb_map, &verb_stacks, &verb_lines, &verb_flame, &verb_heap, &verb_pstack,
	&verb_explain, &verb_check, &verb_oom, &verb_waits, &verb_trace, &verb_diff, &verb_sql,
	&verb_doctor, &verb_record, &verb_probes, &verb_up, &verb_down, &verb_status, &verb_config,
	&verb_serve, &verb_mcp, &verb_report, &verb_export, &verb_import, &verb_replay,
	&verb_symbolize, &verb_prune, &verb_seal, &verb_rotate, &verb_keep, &verb_completion, &verb_version, &verb_help,
	&verb_neighbours, &verb_wakers, NULL,
};

static const struct verb *const LOOK[] = {
	&verb_overview, &verb_top, &verb_ps, &verb_containers, &verb_timeline, &verb_events, &verb_logs, &verb_requests, &verb_net, &verb_disk, &verb_map, &verb_stacks, &verb_lines, &verb_flame, &verb_heap, &verb_pstack, NULL,
};
static const struct verb *const ASK_WHY[] = {&verb_explain, &verb_check, &verb_oom, &verb_waits, &verb_trace, &verb_diff, &verb_sql, NULL};
static const struct verb *const RECORD[] = {&verb_doctor, &verb_record, &verb_probes, &verb_up, &verb_down, &verb_status, &verb_config, NULL};
static const struct verb *const EXPORT[] = {&verb_serve, &verb_mcp, &verb_report, &verb_export, &verb_import, &verb_replay, NULL};
static const struct verb *const KEEP[] = {&verb_symbolize, &verb_prune, &verb_seal, &verb_rotate, &verb_keep, &verb_completion, &verb_version, &verb_help, NULL};

const struct verb_group VERB_GROUPS[] = {
	{"Look", LOOK}, {"Ask why", ASK_WHY}, {"Record", RECORD}, {"Export", EXPORT}, {"Keep", KEEP}, {0},
};
/* clang-format on */

const struct verb *verb_find(const char *name)
{
	for (const struct verb *const *v = VERBS; *v; v++)
		if (!strcmp((*v)->name, name))
			return *v;
	return NULL;
}

const struct option *verb_json_options(const struct verb *v)
{
	return jsonshape_lists(v->name) ? JSON_LIST_OPTIONS : JSON_OPTIONS;
}

void verb_tables(const struct verb *v, const struct option *out[VERB_TABLES])
{
	out[0] = v->options;
	out[1] = v->uses & VERB_JSON ? verb_json_options(v) : NULL;
	out[2] = v->uses & (VERB_STORE | VERB_SELECT) ? STORE_OPTIONS : NULL;
	out[3] = v->uses & VERB_SELECT ? SELECT_RANGE_OPTIONS : NULL;
	out[4] = v->uses & VERB_SELECT && !(v->uses & VERB_RANGE_ONLY) ? SELECT_FILTER_OPTIONS :
									 NULL;
	out[5] = COMMON_OPTIONS;
}
