/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/location.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/store/files/folder.h"

#define SYSTEM_DIR "/var/lib/sonde" /* root's, and sonded's */

const char *store_default_dir(void)
{
	static char dir[PATH_MAX];
	const char *env = getenv("SONDE_STORE");
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *pw;

	if (env && *env) {
		snprintf(dir, sizeof(dir), "%s", env);
	} else if (geteuid() == 0) {
		snprintf(dir, sizeof(dir), SYSTEM_DIR);
	} else if (state && *state == '/') {
		snprintf(dir, sizeof(dir), "%s/sonde", state);
	} else {
		if (!home || *home != '/') {
			pw = getpwuid(geteuid());
			home = pw ? pw->pw_dir : "/";
		}
		snprintf(dir, sizeof(dir), "%s/.local/state/sonde", home);
	}
	return dir;
}

/* Recordings, or a sonded that is about to make some. */
static bool folder_is_used(const char *dir)
{
	char path[PATH_MAX + 16];
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	size_t n = 0;
	bool used = !folder_segments(dir, &names, &n) && n;

	free(names);
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	return used || !access(path, F_OK);
}

/* It has files, and none of those that every store has. */
static bool folder_is_others(const char *dir)
{
	static const char *const own[] = {"lock", "images", "writers", "control.sock",
					  "sonded.lock"};
	const int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = at < 0 ? NULL : fdopendir(at);
	size_t others = 0;
	struct stat st;

	if (at >= 0 && !d)
		close(at);
	if (!d)
		return false;
	for (const struct dirent *f = readdir(d); f; f = readdir(d))
		others += f->d_name[0] != '.';
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		others *= fstatat(dirfd(d), own[i], &st, AT_SYMLINK_NOFOLLOW) != 0;
	closedir(d);
	return others > 0;
}

const char *store_read_dir(void)
{
	const char *own = store_default_dir(), *env = getenv("SONDE_STORE");
	struct stat st;

	if ((env && *env) || !geteuid() || folder_is_used(own) || stat(SYSTEM_DIR, &st) ||
	    !S_ISDIR(st.st_mode))
		return own;
	return SYSTEM_DIR;
}

const char *store_newer(const char *dir)
{
	struct stat own, system;

	if (!geteuid() || strcmp(dir, store_default_dir()) || stat(dir, &own) ||
	    stat(SYSTEM_DIR, &system) || own.st_mtim.tv_sec >= system.st_mtim.tv_sec ||
	    (own.st_dev == system.st_dev && own.st_ino == system.st_ino))
		return NULL;
	return SYSTEM_DIR;
}

void store_rights_fix(const char *path, struct err *e)
{
	const struct group *gr;
	struct stat st;

	gr = stat(path, &st) ? NULL : getgrgid(st.st_gid);
	if (gr && !strcmp(gr->gr_name, "sonde") && st.st_mode & S_IRGRP)
		err_fix(e,
			"run it with sudo, or join the group that may read it: sudo usermod -aG sonde $USER, and log in again");
	else
		err_fix(e, "run it with sudo; another store: --store DIR");
}

int store_none(const char *dir, int error, struct err *e)
{
	const bool own = !strcmp(dir, store_default_dir());
	const char *dot = strrchr(dir, '.');
	struct stat st;

	if (error == EACCES) {
		err_set(e, -error, EXIT_PERMISSION, "cannot read the store %s: permission denied",
			dir);
		store_rights_fix(dir, e);
		return -error;
	}
	if (error == ENOENT && folder_is_others(dir)) {
		err_set(e, -error, EXIT_STORE,
			"%s is no store: it holds other files, and nothing that sonde recorded",
			dir);
		err_fix(e, "name the store's folder: --store DIR");
		return -error;
	}
	if (error == ENOENT && !stat(dir, &st))
		err_set(e, -error, EXIT_STORE,
			"the store %s is empty: nothing was recorded there yet", dir);
	else
		err_set(e, -error, EXIT_STORE, "there is no store in %s%s: %s", dir,
			own && geteuid() ? ", and none in " SYSTEM_DIR : "", strerror(error));
	if (dot && !strcmp(dot, ".db"))
		err_fix(e, "name a store's folder, or one .db file of it: --store DIR");
	else
		err_fix(e,
			"sudo sonde record -d 10s%s%.200s    makes one; another store: --store DIR",
			own ? "" : " --store ", own ? "" : dir);
	return -error;
}
