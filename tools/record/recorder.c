/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: living writers. */
#include "tools/record/recorder.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/cleanup.h"

/* A pid alone may have been reused (or be another host's): the name must match too. */
static bool part_is_live(const struct select_part *p)
{
	char path[64], comm[32] = "";
	FILE *f cleanup_file = NULL;

	if (p->state != 0 || p->pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%lld/comm", (long long)p->pid);
	f = fopen(path, "re");
	return f && fgets(comm, sizeof(comm), f) && !strncmp(comm, "sonde-", 6);
}

bool recorder_is_live(const struct select_recording *r)
{
	for (size_t i = 0; i < r->n_parts; i++)
		if (part_is_live(&r->parts[i]))
			return true;
	return false;
}
