/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/mend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/file/owner.h"
#include "schema/store/files/folder.h"

#define DEPTH_MAX 3 /* images/by-stat */

/* Names in the store's folder that sonde makes (folder.h, supervisor/). */
static bool is_ours(const char *name)
{
	static const char *const names[] = {"lock",    "writers",     "images",     "removed",
					    "ballast", "turn",        "turn.new",   "children",
					    "sealing", "sonded.lock", "sonded.log", "sealing.db"};
	char segment[SEGMENT_NAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	snprintf(segment, sizeof(segment), "%.24s", name); /* NAME.db, NAME.db-wal, NAME.db.bad */
	return folder_is_segment_name(segment) || !strncmp(name, "sealing.db-", 11);
}

/* How many of a folder's files were given to `owner`; those that fail are in *failed. */
static int mend_folder(int dir, const struct stat *owner, int depth, int *failed)
{
	cleanup_dir DIR *d = fdopendir(dir);
	const struct dirent *de;
	int given = 0, rc;

	if (!d) {
		*failed = -errno;
		close(dir);
		return 0;
	}
	while ((de = readdir(d))) {
		int sub;

		if (de->d_name[0] == '.' &&
		    (!de->d_name[1] || (de->d_name[1] == '.' && !de->d_name[2])))
			continue;
		if (!depth && !is_ours(de->d_name))
			continue;
		rc = owner_give(dirfd(d), owner, de->d_name);
		given += rc > 0;
		*failed = rc < 0 ? rc : *failed;
		sub = depth + 1 < DEPTH_MAX ?
			      openat(dirfd(d), de->d_name,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) :
			      -1;
		if (sub >= 0)
			given += mend_folder(sub, owner, depth + 1, failed);
	}
	return given;
}

int folder_mend(const char *store)
{
	int dir = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC), given, failed = 0;
	struct stat st;

	if (dir < 0)
		return -errno;
	if (fstat(dir, &st) < 0 || !st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(dir);
		return 0;
	}
	given = mend_folder(dir, &st, 0, &failed);
	return failed ? failed : given;
}
