/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pstack_watch_fuzz: any bytes as an epoll's line, as an array of poll(2) and as a set of
 * select(2): never more descriptors than there is room for, none negative.
 *
 * covers: loaders/pstack/wait_fds.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/pstack/wait_fds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct watch_fds all = {0};
	struct watch_fd one;
	char *line = calloc(1, len + 1);

	if (!line)
		abort();
	memcpy(line, data, len);
	(void)watch_epoll_line(line, &one);
	watch_poll(data, len, &all);
	watch_set(data, len, len > 4 ? (uint32_t)data[0] << 16 | data[1] : 9, &all);
	if (all.n > WATCH_FDS || all.n > len / 8 + 8 * len)
		abort();
	for (size_t i = 0; i < all.n; i++)
		if (all.rows[i].fd > INT32_MAX)
			abort();
	watch_release(&all);
	free(line);
	return 0;
}
