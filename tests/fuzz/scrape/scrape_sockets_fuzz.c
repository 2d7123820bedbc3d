/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape_sockets_fuzz: lines of /proc/net/tcp in any form; an address is given only if no other
 * socket has it.
 *
 * covers: loaders/scrape/sockets.c, loaders/scrape/unixsockets.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/scrape/sockets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct listening all[16], to;
	bool ended;
	size_t n;

	if (!len)
		return 0;
	n = data[0] & 2 ?
		    sockets_parse_unix((const char *)data + 1, len - 1, all, 16) :
		    sockets_parse((const char *)data + 1, len - 1, data[0] & 1, all, 16, &ended);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; sockets_reach(all, n, i, &to) && k < n; k++)
			if (k != i && all[k].v6 == to.v6 && all[k].port == to.port &&
			    !memcmp(all[k].address, to.address, 16) &&
			    !strcmp(all[k].path, to.path))
				abort();
	return 0;
}
