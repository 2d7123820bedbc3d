/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the table of them, in the order of the help. */
#include <string.h>

#include "tools/verb.h"

const struct verb *const VERBS[] = {
	&verb_doctor, &verb_record, &verb_ps, &verb_containers, &verb_pstack, &verb_flame, &verb_stacks, &verb_lines, &verb_diff, &verb_export,
	&verb_sql, &verb_symbolize, &verb_status, &verb_version, &verb_help, NULL,
};

const struct verb *verb_find(const char *name)
{
	for (const struct verb *const *v = VERBS; *v; v++)
		if (!strcmp((*v)->name, name))
			return *v;
	return NULL;
}
