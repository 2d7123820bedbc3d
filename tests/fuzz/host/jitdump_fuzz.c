/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump_fuzz: any bytes give disjoint, sorted pieces; each that has a name is found under it, and
 * its place is a file's. The same bytes as a file: what is read of it can be parsed, too.
 *
 * covers: loaders/lib/host/names/jitdump.c loaders/lib/host/names/perfmap.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/lib/host/names/jitdump.h"
#include "loaders/lib/host/names/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const void *data, size_t len, uint32_t pid)
{
	uint64_t start, end, last = 0;
	struct perfmap *m = NULL;
	struct perfmap_entry e;
	const char *name;

	if (jitdump_parse(data, len, pid, &m))
		return;
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
}

/* The file may be shorter than it was said to be. */
static void check_file(const uint8_t *data, size_t len, uint32_t pid)
{
	static int fd = -1;
	char *kept = NULL;
	size_t n = 0;

	if (fd < 0)
		fd = memfd_create("jitdump", MFD_CLOEXEC);
	if (ftruncate(fd, 0) || pwrite(fd, data, len, 0) != (ssize_t)len)
		abort();
	if (jitdump_slim(fd, len + (len & 1 ? 100 : 0), &kept, &n))
		return;
	if (n > JITDUMP_BYTES)
		abort();
	check(kept, n, pid);
	free(kept);
}

static void path(const uint8_t *data, size_t len, uint32_t pid)
{
	char text[64];
	const char *paths[] = {text, NULL};

	len = len < sizeof(text) ? len : sizeof(text) - 1;
	memcpy(text, data, len);
	text[len] = 0;
	jitdump_path(paths, 2, pid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint32_t pid = 0;

	if (len >= 24)
		memcpy(&pid, data + 20, sizeof(pid));
	check(data, len, pid);
	check_file(data, len, pid);
	path(data, len, 7);
	return 0;
}
