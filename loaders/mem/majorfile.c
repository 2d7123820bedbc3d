/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/majorfile.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

/* Memory without a file has no path, or a word in brackets. */
static void name_of(const struct proc_map *m, char name[MAJOR_PATH_LEN + 1])
{
	cleanup_free char *path = NULL;
	size_t len, cut;

	if (!m->path_len || m->path[0] == '[') {
		strcpy(name, MAJOR_SWAP);
		return;
	}
	path = mem_alloc(m->path_len + 1);
	len = proc_unescape(m->path, m->path_len, path);
	cut = len > MAJOR_PATH_LEN ? len - MAJOR_PATH_LEN : 0;
	memcpy(name, path + cut, len - cut);
	name[len - cut] = '\0';
}

bool major_named(const char *maps, size_t len, uint64_t address, uint64_t *start, uint64_t *end,
		 char name[MAJOR_PATH_LEN + 1])
{
	struct proc_map m;
	size_t pos = 0;

	while (proc_next_map(maps, len, &pos, &m)) {
		if (address < m.start || address >= m.end)
			continue;
		*start = m.start;
		*end = m.end;
		name_of(&m, name);
		return true;
	}
	return false;
}

static void path_add(char *name, const char *part, size_t max)
{
	size_t at = strlen(name), n = strnlen(part, max);

	if (at + n > MAJOR_PATH_LEN)
		n = MAJOR_PATH_LEN - at;
	memcpy(name + at, part, n);
	name[at + n] = '\0';
}

void major_path(const struct mem_file *f, char name[MAJOR_PATH_LEN + 1])
{
	int n = 0;
	bool root;

	while (n < MEM_FILE_NAMES && f->names[n][0])
		n++;
	root = n && !strncmp(f->names[n - 1], "/", MEM_FILE_NAME);
	name[0] = '\0';
	if (n == MEM_FILE_NAMES && !root)
		path_add(name, "...", 3);
	for (n -= 1 + root; n >= 0; n--) {
		path_add(name, "/", 1);
		path_add(name, f->names[n], MEM_FILE_NAME);
	}
}

bool major_is(const struct mem_file *f, const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

	return !strncmp(file, f->names[0], MEM_FILE_NAME - 1);
}
