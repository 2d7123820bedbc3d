/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs, in the order of the help. */
#include <string.h>

#include "tools/cli/verb.h"
#include "tools/select/select.h"
#include "tools/verbs/help.h"

/* clang-format off */
const struct verb *const VERBS[] = {
	&verb_overview, &verb_doctor, &verb_record, &verb_timeline, &verb_explain, &verb_events, &verb_oom, &verb_check, &verb_top, &verb_ps, &verb_containers, &verb_pstack, &verb_flame, &verb_stacks, &verb_lines, &verb_heap, &verb_report, &verb_diff, &verb_serve,
	&verb_waits, &verb_neighbours, &verb_wakers, &verb_net, &verb_map, &verb_requests, &verb_trace, &verb_export, &verb_import, &verb_replay, &verb_sql, &verb_symbolize,
	&verb_up, &verb_down, &verb_status, &verb_logs, &verb_prune, &verb_seal, &verb_rotate, &verb_config, &verb_completion, &verb_version, &verb_help, NULL,
};
/* clang-format on */

const struct verb *verb_find(const char *name)
{
	for (const struct verb *const *v = VERBS; *v; v++)
		if (!strcmp((*v)->name, name))
			return *v;
	return NULL;
}

void verb_tables(const struct verb *v, const struct option *out[VERB_TABLES])
{
	out[0] = v->options;
	out[1] = v->uses & VERB_JSON ? JSON_OPTIONS : NULL;
	out[2] = v->uses & (VERB_STORE | VERB_SELECT) ? STORE_OPTIONS : NULL;
	out[3] = v->uses & VERB_SELECT ? SELECT_RANGE_OPTIONS : NULL;
	out[4] = v->uses & VERB_SELECT && !(v->uses & VERB_RANGE_ONLY) ? SELECT_FILTER_OPTIONS :
									 NULL;
	out[5] = COMMON_OPTIONS;
}
