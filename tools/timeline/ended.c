/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/timeline/ended.h"

#include <stdio.h>
#include <string.h>

void ended_say(enum store_end_how how, uint32_t status, char out[ENDED_MAX])
{
	const char *name = how == STORE_END_SIGNAL ? sigabbrev_np((int)status) : NULL;

	out[0] = '\0';
	if (how == STORE_END_EXIT)
		snprintf(out, ENDED_MAX, "exit %u", status);
	else if (how == STORE_END_SIGNAL)
		snprintf(out, ENDED_MAX, "signal %u%s%s%s", status, name ? " (" : "",
			 name ? name : "", name ? ")" : "");
	else if (how == STORE_END_OOM)
		snprintf(out, ENDED_MAX, "out of memory");
	else if (how == STORE_END_EXEC)
		snprintf(out, ENDED_MAX, "exec");
	else if (how == STORE_END_UNKNOWN)
		snprintf(out, ENDED_MAX, "ended");
}
