/* SPDX-License-Identifier: Apache-2.0 */
/* unreadable: see the header. */
#include "schema/store/read/unreadable.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/integrity.h"

static struct {
	char **paths;
	size_t n, cap;
} left;

bool unreadable_has(const char *path)
{
	for (size_t i = 0; i < left.n; i++)
		if (!strcmp(left.paths[i], path))
			return true;
	return false;
}

void unreadable_add(const char *path)
{
	mem_grow(left.paths, left.n, left.cap);
	left.paths[left.n++] = mem_strdup(path);
}

const char *unreadable_path(size_t i)
{
	return i < left.n ? left.paths[i] : NULL;
}

/* The newest first: a damaged one is found sooner where most questions are. */
bool unreadable_find(const char *dir, const char *said, char path[])
{
	cleanup_free char (*names)[SEGMENT_NAME_MAX] = NULL;
	size_t n = 0;

	if (folder_segments(dir, &names, &n))
		return false;
	for (size_t i = n; i-- > 0;) {
		if (strstr(said, names[i]) && (size_t)snprintf(path, PATH_MAX, "%s/%s", dir, names[i]) < PATH_MAX && !unreadable_has(path))
			return true;
	}
	for (size_t i = n; i-- > 0;) {
		if ((size_t)snprintf(path, PATH_MAX, "%s/%s", dir, names[i]) < PATH_MAX && !unreadable_has(path) && !integrity_holds(path))
			return true;
	}
	return false;
}
