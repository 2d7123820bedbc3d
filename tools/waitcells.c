/* SPDX-License-Identifier: Apache-2.0 */
/* waitcells: see the header. */
#include "tools/waitcells.h"

#include <errno.h>
#include <string.h>

#include "tools/json.h"

void waitcell_duration(struct table *t, uint64_t ns, bool known)
{
	double v = (double)ns;

	if (!known)
		table_cell(t, "-");
	else if (v < 1e6)
		table_cellf(t, "%.0f us", v / 1e3);
	else if (v < 1e9)
		table_cellf(t, "%.1f ms", v / 1e6);
	else if (v < 120e9)
		table_cellf(t, "%.2f s", v / 1e9);
	else
		table_cellf(t, "%.1f min", v / 60e9);
}

void waitcell_percent(struct table *t, uint64_t part, uint64_t whole)
{
	table_cellf(t, "%.1f %%", whole ? 100 * (double)part / (double)whole : 0);
}

int waitcell_by(const char *word, enum waitsum_by *by, struct err *e)
{
	static const char *const names[] = {[WAITSUM_BY_PROCESS] = "process", [WAITSUM_BY_THREAD] = "thread",
					    [WAITSUM_BY_COMMAND] = "command", [WAITSUM_BY_CONTAINER] = "container"};

	*by = WAITSUM_BY_PROCESS;
	for (size_t i = 0; word && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], word)) {
			*by = (enum waitsum_by)i;
			return 0;
		}
	if (!word)
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--by '%.40s': it is process, thread, command or container", word);
	err_fix(e, "--by command");
	return -EINVAL;
}

json_t *waitcell_text(const char *s)
{
	return s && *s ? json_text(s) : json_null();
}

json_t *waitcell_number(uint64_t v, bool known)
{
	return known ? json_integer((json_int_t)v) : json_null();
}
