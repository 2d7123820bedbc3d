/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/read/unreadable.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/integrity.h"
#include "schema/store/read/hosts.h"

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

/* `name`: what an error calls the file. `said` is NULL: it is read. */
static bool is_meant(const char *path, const char *name, const char *said)
{
	return !unreadable_has(path) &&
	       (said ? strstr(said, name) != NULL : !integrity_holds(path));
}

/* The newest first: a damaged one is found sooner where most questions are. `several`: files of
 * other folders may have the same names. */
static bool find_in_folder(const char *dir, bool several, const char *said, char path[])
{
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	size_t n = 0;

	if (folder_segments(dir, &names, &n))
		return false;
	for (size_t i = n; i-- > 0;)
		if ((size_t)snprintf(path, PATH_MAX, "%s/%s", dir, names[i]) < PATH_MAX &&
		    is_meant(path, several ? path : names[i], said))
			return true;
	return false;
}

static bool find_in_list(const char *list, const char *said, char path[])
{
	for (const char *p = list; p;
	     p = strchr(p, STORE_LIST) ? strchr(p, STORE_LIST) + 1 : NULL) {
		cleanup_free char *one =
			mem_strndup(p, strcspn(p, (const char[]){STORE_LIST, '\0'}));
		struct stat st;

		if (stat(one, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) ? find_in_folder(one, true, said, path) :
					  is_meant(one, one, said)) {
			if (!S_ISDIR(st.st_mode))
				snprintf(path, PATH_MAX, "%s", one);
			return true;
		}
	}
	return false;
}

bool unreadable_find(const char *store, const char *said, char path[])
{
	if (!strchr(store, STORE_LIST))
		return find_in_folder(store, false, said, path) ||
		       find_in_folder(store, false, NULL, path);
	return find_in_list(store, said, path) || find_in_list(store, NULL, path);
}
