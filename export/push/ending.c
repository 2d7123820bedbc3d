/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/ending.h"

#include <stddef.h>
#include <stdint.h>

#include "schema/base/clock.h"

void ending_begin(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGTERM);
	sigaddset(ends, SIGINT);
	sigprocmask(SIG_BLOCK, ends, NULL);
}

bool ending_asked(void)
{
	sigset_t waiting;

	return !sigpending(&waiting) &&
	       (sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1);
}

bool ending_now(void)
{
	static int64_t asked_ns;

	if (!ending_asked())
		return false;
	if (!asked_ns)
		asked_ns = clock_boot_ns();
	return clock_boot_ns() - asked_ns > ENDING_GRACE_S * NSEC_PER_SEC;
}
