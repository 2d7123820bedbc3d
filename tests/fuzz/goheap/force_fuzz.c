/* SPDX-License-Identifier: Apache-2.0 */
/* A record of what --mode force changed: what it is parsed to, written out again, is the same text.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/goheap/force.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct force_record r, again;
	char text[192];
	int n;

	if (force_record_parse((const char *)data, size, &r))
		return 0;
	n = snprintf(text, sizeof(text),
		     "sonde-goheap 1 %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		     " %" PRIu64 "\n",
		     r.pid, r.start_ticks, r.exe_dev, r.exe_ino, r.mark, r.addr, r.rate);
	memset(&again, 0, sizeof(again));
	if (!r.pid || !r.addr || r.addr & 7 || !r.rate ||
	    force_record_parse(text, (size_t)n, &again) || again.pid != r.pid ||
	    again.mark != r.mark || again.addr != r.addr || again.rate != r.rate)
		abort();
	return 0;
}
