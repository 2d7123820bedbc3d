/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/retention/madestore.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/store/files/folder.h"

#define DEPTH_FDS 16

static bool folder_is_empty(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *entry;
	bool empty = d != NULL;

	while (empty && (entry = readdir(d)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

void madestore_note(struct madestore *l, const char *store)
{
	struct stat st;
	char *slash;

	*l = (struct madestore){0};
	snprintf(l->store, sizeof(l->store), "%s", store);
	if (!lstat(l->store, &st)) {
		l->empty = S_ISDIR(st.st_mode) && folder_is_empty(l->store);
		return;
	}
	snprintf(l->first, sizeof(l->first), "%s", store);
	for (;;) {
		char up[PATH_MAX];

		snprintf(up, sizeof(up), "%s", l->first);
		slash = strrchr(up, '/');
		if (!slash || slash == up)
			return;
		*slash = '\0';
		if (!lstat(up, &st))
			return;
		memcpy(l->first, up, sizeof(up));
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	if (at->level)
		(void)remove(path);
	return 0;
}

void madestore_remove(const struct madestore *l)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	size_t n = 0;
	int rc;

	if (!l->first[0] && !l->empty)
		return;
	rc = folder_segments(l->store, &names, &n);
	free(names);
	if (rc || n)
		return;
	nftw(l->store, remove_one, DEPTH_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	snprintf(path, sizeof(path), "%s", l->store);
	/* those that are not empty stay */
	while (l->first[0] && !rmdir(path) && strcmp(path, l->first)) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return;
		*slash = '\0';
	}
}
