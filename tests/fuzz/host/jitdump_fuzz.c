/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump_fuzz: any bytes give disjoint, sorted pieces; each that has a name is found under it, and
 * its place is a file's.
 *
 * covers: loaders/lib/host/names/jitdump.c loaders/lib/host/names/perfmap.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/jitdump.h"
#include "loaders/lib/host/names/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t start, end, last = 0;
	uint32_t pid = 0;
	struct perfmap *m = NULL;
	struct perfmap_entry e;
	const char *name;

	if (len >= 24)
		memcpy(&pid, data + 20, sizeof(pid));
	if (jitdump_parse(data, len, pid, &m))
		return 0;
	for (size_t i = 0; perfmap_range(m, i, &start, &end, &name); i++) {
		if (start < last || end <= start || strlen(name) > PERFMAP_NAME_MAX)
			abort();
		last = end;
		if (perfmap_find(m, end - 1, &e) != (*name != 0) ||
		    (*name && (strcmp(e.name, name) || e.start > start ||
			       (e.file && strlen(e.file) > PERFMAP_NAME_MAX))))
			abort();
	}
	perfmap_free(m);
	return 0;
}
