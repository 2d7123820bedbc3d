/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap_fuzz: any text gives disjoint, sorted pieces, each of which is found under the name that
 * it has.
 *
 * covers: loaders/lib/host/names/perfmap.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/names/perfmap.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct perfmap_stamp stamp = {0};
	struct perfmap *m = NULL;

	(void)argc;
	(void)argv;
	if (!perfmap_read((uint32_t)getpid(), (uint32_t)getpid(), getuid(), &stamp, &m))
		perfmap_free(m);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t start, end, last = 0;
	struct perfmap_entry e;
	struct perfmap *m;
	const char *name;

	perfmap_parse((const char *)data, len, &m);
	for (size_t i = 0; perfmap_range(m, i, &start, &end, &name); i++) {
		if (start < last || end <= start || !name[0] || strlen(name) > PERFMAP_NAME_MAX)
			abort();
		if (!perfmap_find(m, start, &e) || strcmp(e.name, name) || e.start > start)
			abort();
		if (!perfmap_find(m, end - 1, &e) || strcmp(e.name, name) ||
		    end - 1 - e.start >= e.size)
			abort();
		last = end;
	}
	perfmap_find(m, 0, &e);
	perfmap_find(m, UINT64_MAX, &e);
	if (perfmap_count(m) + perfmap_skipped(m) > len)
		abort();
	(void)perfmap_bytes(m);
	perfmap_free(m);
	return 0;
}
