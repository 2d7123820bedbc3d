/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitpack_fuzz: whatever a process that reads strangers' files hands over is refused, or safe to
 * ask.
 *
 * covers: loaders/lib/host/names/perfmap_pack.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	void *block = malloc(len ? len : 1);
	uint64_t start, end, last = 0;
	struct perfmap_entry e;
	struct perfmap *m;
	const char *name;

	if (!block)
		abort();
	memcpy(block, data, len);
	if (perfmap_unpack(block, len, &m)) {
		free(block);
		return 0;
	}
	for (size_t i = 0; perfmap_range(m, i, &start, &end, &name); i++) {
		if (start < last || end <= start || strlen(name) > PERFMAP_NAME_MAX)
			abort();
		last = end;
		if (perfmap_find(m, end - 1, &e) &&
		    (strcmp(e.name, name) || (e.file && strlen(e.file) > PERFMAP_NAME_MAX)))
			abort();
	}
	perfmap_find(m, 0, &e);
	perfmap_find(m, UINT64_MAX, &e);
	(void)perfmap_bytes(m);
	perfmap_free(m);
	return 0;
}
