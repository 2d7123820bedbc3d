/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/typed.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"

#define NAME "sonde"

/* Where `sonde` is, seen from this program: in the same folder, or in the bin that belongs to its
 * libexec. */
static bool sonde_path(char path[PATH_MAX])
{
	static const char *const places[] = {"%s/" NAME, "%s/../../bin/" NAME};
	char self[PATH_MAX], place[PATH_MAX + 32];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(place, sizeof(place), places[i], self);
		if (!access(place, X_OK) && realpath(place, path))
			return true;
	}
	return false;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Does a search in these folders find this very program first? */
static bool found_in(const char *folders, const char *path)
{
	char place[PATH_MAX];

	while (*folders) {
		size_t len = strcspn(folders, ":");
		int n = snprintf(place, sizeof(place), "%.*s/" NAME, (int)len, len ? folders : ".");

		if (n > 0 && (size_t)n < sizeof(place) && !access(place, X_OK))
			return same_file(place, path);
		folders += len + (folders[len] == ':');
	}
	return false;
}

/* As a shell takes it. */
static void quote(const char *path, char *out, size_t size)
{
	bool plain = !path[strspn(
		path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-")];

	snprintf(out, size, plain || strchr(path, '\'') ? "%s" : "'%s'", path);
}

static void make(bool sudo, char *out, size_t size)
{
	const char *folders =
		sudo ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" :
		       getenv("PATH");
	char path[PATH_MAX];
	cleanup_free char *here = getcwd(NULL, 0);
	size_t len = here ? strlen(here) : 0;

	if (!sonde_path(path) || found_in(folders ? folders : "", path))
		snprintf(out, size, NAME);
	else if (len > 1 && !strncmp(path, here, len) && path[len] == '/')
		quote(strchr(path + len + 1, '/') ? path + len + 1 : path, out, size);
	else
		quote(path, out, size);
}

const char *typed_sonde(bool sudo)
{
	static char typed[2][PATH_MAX + 8];

	const int error =
		errno; /* hints come after failures, which their callers have still to tell */

	sudo = sudo && geteuid();
	if (!*typed[sudo])
		make(sudo, typed[sudo], sizeof(typed[sudo]));
	errno = error;
	return typed[sudo];
}

/* Is this word the first of a command? */
static bool begins(const char *hint, const char *at, const char *word)
{
	const size_t len = strlen(word);

	return (at == hint || strchr(" \n('\"`", at[-1])) && !strncmp(at, word, len) &&
	       at[len] == ' ' &&
	       (islower((unsigned char)at[len + 1]) ||
		(isupper((unsigned char)at[len + 1]) && !strcmp(word, "sudo")));
}

void typed_add(struct strbuf *out, const char *hint)
{
	bool sudo = false;

	for (const char *at = hint; *at;) {
		size_t len = strcspn(at, " ");

		if (begins(hint, at, "sudo")) {
			sudo = true;
			at += geteuid() ? 0 : 5;
			if (!geteuid())
				continue;
		} else if (begins(hint, at, NAME)) {
			strbuf_addstr(out, typed_sonde(sudo));
			at += sizeof(NAME) - 1;
			sudo = false;
			continue;
		} else if (!memchr(at, '=', len)) { /* sudo X=Y sonde ... */
			sudo = false;
		}
		len = strcspn(at, " (\n'\"`");
		len += at[len] != '\0';
		strbuf_add(out, at, len);
		at += len;
	}
}
