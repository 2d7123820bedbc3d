/* SPDX-License-Identifier: Apache-2.0 */
/* rotate: closes the current segment, so that it can be copied, and waits until it is complete. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/store/files/folder.h"
#include "tools/cli/verb.h"
#include "tools/record/daemon.h"

#define LOOK_US 50000
#define WAIT_S  30 /* a loader commits every ten seconds */

/* A later segment exists and this one's write-ahead log is gone: it has no more writers. */
static bool is_left(const char *store, const char *name)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	char wal[PATH_MAX];
	size_t n = 0;
	bool later = !folder_segments(store, &names, &n) && n && strcmp(names[n - 1], name) > 0;

	free(names);
	return later &&
	       (size_t)snprintf(wal, sizeof(wal), "%s/%s-wal", store, name) < sizeof(wal) &&
	       access(wal, F_OK) < 0;
}

static int wait_for(const char *store, const char *name, struct err *e)
{
	for (int i = 0; i < WAIT_S * 1000000 / LOOK_US; i++) {
		if (is_left(store, name))
			return 0;
		usleep(LOOK_US);
	}
	err_set(e, -ETIMEDOUT, EXIT_NOTHING,
		"%s/%s is still open after %d s: its writers close it with their next write", store,
		name, WAIT_S);
	err_fix(e, "sonde export db -o copy.db    copies the data without waiting");
	return -ETIMEDOUT;
}

static int rotate_run(struct verb_call *call, struct err *e)
{
	json_t *answer = NULL;
	const char *name;
	int rc = daemon_ask(call->store, json_pack("{s:s}", "do", "rotate"), &answer, e);

	if (rc == -ENOENT)
		err_fix(e,
			"only sonded closes files on demand; this copies any store: sonde export db -o copy.db");
	if (rc)
		return rc;
	name = json_string_value(json_object_get(answer, "segment")) ?: "";
	rc = wait_for(call->store, name, e);
	if (!rc) {
		printf("%s/%s\n", call->store, name);
		rc = verb_flush(0, e);
	}
	json_decref(answer);
	return rc;
}

static const char *const ROTATE_EXAMPLES[] = {"sudo sonde rotate",
					      "cp \"$(sudo sonde rotate)\" /mnt/backup/", NULL};

const struct verb verb_rotate = {
	.name = "rotate",
	.summary = "close the current segment, and print its path",
	.usage = "",
	.examples = ROTATE_EXAMPLES,
	.uses = VERB_STORE,
	.run = rotate_run,
};
