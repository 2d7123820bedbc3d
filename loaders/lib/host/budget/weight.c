/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/budget/weight.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

/* Best effort: without CAP_SYS_NICE, or without autogroup, it stays as it is. */
void weight_raise(int nice)
{
	cleanup_fd int fd = -1;

	if (getsid(0) != getpid())
		return;
	fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		dprintf(fd, "%d", nice);
}

bool weight_session(int nice)
{
	if (setsid() < 0)
		return false;
	weight_raise(nice);
	return true;
}
