/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oomlog_fuzz: the kernel's log may hold anything: names are chosen by programs. It is read within
 * its bounds, and what is found is ended.
 *
 * covers: loaders/host/events/oomlog.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/host/events/oomlog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct oomlog out;
	char *text = malloc(len + !len); /* of just that length */

	memcpy(text, data, len);
	for (uint32_t pid = 76; pid < 80; pid++) {
		if (!oomlog_find(text, len, pid, 4096, &out))
			continue;
		if (out.pid != pid || out.n_tasks > OOMLOG_TASKS ||
		    memchr(out.cgroup, 0, sizeof(out.cgroup)) == NULL)
			abort();
		for (size_t i = 0; i < out.n_tasks; i++)
			if (!memchr(out.tasks[i].comm, 0, OOMLOG_COMM) ||
			    (i && out.tasks[i].rss_bytes + out.tasks[i].swap_bytes >
					  out.tasks[i - 1].rss_bytes + out.tasks[i - 1].swap_bytes))
				abort();
	}
	free(text);
	return 0;
}
