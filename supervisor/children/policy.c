/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/policy.h"

#include "schema/base/err.h"

#define FIRST_NS      500000000ll
#define MOST_NS       60000000000ll
#define READY_MOST_NS 10000000000ll

int64_t policy_delay_ns(unsigned int failures, bool was_ready, uint32_t random)
{
	int64_t most = was_ready ? READY_MOST_NS : MOST_NS;
	int64_t ns = FIRST_NS << (failures < 1 ? 0 : failures > 8 ? 7 : failures - 1);

	ns = ns < most ? ns : most;
	return ns - ns / 4 + (int64_t)((double)ns / 2 * ((double)random / (double)UINT32_MAX));
}

bool policy_gives_up(unsigned int failures, bool was_ready, int exit)
{
	if (!was_ready &&
	    (exit == EXIT_USAGE || exit == EXIT_PREREQUISITE || exit == EXIT_PERMISSION))
		return true;
	if (exit == EXIT_STORE)
		return false;
	return failures >= (was_ready ? POLICY_CRASHES : POLICY_TRIES);
}

enum policy_verdict policy_judge(int64_t silent_ns, int64_t waited_ns, int64_t most_ns)
{
	if (silent_ns <= most_ns)
		return POLICY_IN_TIME;
	return silent_ns - waited_ns <= most_ns ? POLICY_STARVED : POLICY_HANGS;
}
