/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: living writers. */
#include "tools/recorder.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/cleanup.h"

/* A pid alone may be somebody else's by now (or another host's): the name must fit too. */
bool recorder_is_live(const struct select_recording *r)
{
	char path[64], comm[32] = "";
	FILE *f cleanup_file = NULL;

	if (r->state != 0 || r->pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%lld/comm", (long long)r->pid);
	f = fopen(path, "re");
	return f && fgets(comm, sizeof(comm), f) && !strncmp(comm, "sonde-", 6);
}
