/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/timeline/ended.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"

#define KILLED_NS (1 * NSEC_PER_SEC)
#define FAILED_NS (10 * NSEC_PER_SEC)

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

static bool is_crash(uint32_t signal)
{
	static const uint32_t crashes[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
					   SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};

	for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
		if (crashes[i] == signal)
			return true;
	return false;
}

bool ended_is_news(enum store_end_how how, uint32_t status, int64_t lived_ns)
{
	if (how == STORE_END_SIGNAL)
		return is_crash(status) || lived_ns >= KILLED_NS;
	return how == STORE_END_OOM || (how == STORE_END_EXIT && status && lived_ns >= FAILED_NS);
}
