/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offcpu_quota_fuzz: cpu.stat and /proc/stat of any bytes are read within their bounds; what is
 * refused leaves the output alone.
 *
 * covers: loaders/offcpu/quota_parse.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/offcpu/quota.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct store_throttle throttle_before = {1, 2, 3};
	const struct store_steal steal_before = {1, 2, 3};
	struct store_throttle t = throttle_before;
	struct store_steal s = steal_before;
	char *text = malloc(len + !len); /* of just that length */

	memcpy(text, data, len);
	if (!quota_parse_cpustat(text, len, &t) && memcmp(&t, &throttle_before, sizeof(t)))
		abort();
	if (!quota_parse_stat(text, len, 100, &s)) {
		if (memcmp(&s, &steal_before, sizeof(s)))
			abort();
	} else if (s.steal_ns > s.cpu_ns || s.idle_ns > s.cpu_ns) {
		abort();
	}
	free(text);
	return 0;
}
