/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap_fuzz: any text gives disjoint, sorted pieces, each of which is found under the name that
 * it has.
 *
 * covers: loaders/lib/host/names/perfmap.c loaders/lib/host/names/perfmap_pack.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Read from a file, in pieces, it says the same. */
static void check_stream(const uint8_t *data, size_t len, const struct perfmap *m)
{
	struct perfmap *read = NULL;
	FILE *f = tmpfile();

	if (!f || (len && fwrite(data, 1, len, f) != len) || fflush(f))
		abort();
	if (!perfmap_stream(fileno(f), len, &read) && perfmap_count(read) != perfmap_count(m))
		abort();
	perfmap_free(read);
	fclose(f);
}

/* Handed to another process, it says the same. */
static void check_pack(const struct perfmap *m)
{
	size_t size = perfmap_packed_size(m);
	void *block = malloc(size);
	struct perfmap *got = NULL;
	uint64_t start, end;
	const char *name;

	if (!block)
		abort();
	perfmap_pack(m, block);
	if (perfmap_unpack(block, size, &got) || perfmap_count(got) != perfmap_count(m))
		abort();
	for (size_t i = 0; perfmap_range(m, i, &start, &end, &name); i++) {
		struct perfmap_entry a = {0}, b = {0};
		bool there = perfmap_find(m, start, &a);

		if (perfmap_find(got, start, &b) != there ||
		    (there && (strcmp(a.name, b.name) || a.start != b.start)))
			abort();
	}
	perfmap_free(got);
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
	check_pack(m);
	check_stream(data, len, m);
	perfmap_free(m);
	return 0;
}
