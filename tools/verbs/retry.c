/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/verbs/retry.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/log.h"
#include "schema/store/read/days.h"
#include "schema/store/read/reader.h"
#include "schema/store/read/unreadable.h"

/* a file may disappear between two reads of the folder, but not every time */
#define REMOVED_TRIES 3

/* Does the store have other files? True for a folder or several stores. */
static bool has_others(const char *store)
{
	struct stat st;

	return strchr(store, STORE_LIST) || (stat(store, &st) == 0 && S_ISDIR(st.st_mode));
}

bool retry_worth(const char *store, int tries, struct err *e)
{
	char path[PATH_MAX];

	if (e->exit != EXIT_STORE || !has_others(store))
		return false;
	if (!tries && store_days_off()) {
		*e = (struct err){0};
		return true;
	}
	if (e->code == -ENOENT && tries < REMOVED_TRIES) {
		*e = (struct err){0};
		return true;
	}
	if ((e->code != -EBADMSG && e->code != -EIO) || !unreadable_find(store, e->what, path))
		return false;
	log_warn("%s is damaged or unreadable and is left out (%s)", path, e->what);
	unreadable_add(path);
	*e = (struct err){0};
	return true;
}
