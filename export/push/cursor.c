/* SPDX-License-Identifier: Apache-2.0 */
/* cursor: see the header. One line: sonde-push 1 SENT_TS ROWS MISSED_S REFUSED TRYING_TS; the last
 * two came later. */
#include "export/push/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"

static void path_of(const char *dir, const char *store, const char *target, char out[PATH_MAX])
{
	char real[PATH_MAX];

	snprintf(out, PATH_MAX, "%.3000s/push-%016" PRIx64 "-%s", dir,
		 hash_str(HASH_SEED, realpath(store, real) ? real : store), target);
}

int push_cursor_read(const char *dir, const char *store, const char *target,
		     struct cursor_state *out, struct err *e)
{
	struct cursor_state c = {0};
	char path[PATH_MAX];
	cleanup_file FILE *f = NULL;

	*out = c;
	path_of(dir, store, target, path);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? 0 :
					 err_set(e, -errno, EXIT_PERMISSION, "cannot read %s: %s",
						 path, strerror(errno));
	if (fscanf(f, "sonde-push 1 %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64,
		   &c.sent_ts, &c.rows, &c.missed_s, &c.refused, &c.trying_ts) >= 3 &&
	    c.sent_ts >= 0 && c.sent_ts < 1ll << 40)
		*out = c;
	else
		log_warn("%s is damaged: recent data will be sent again", path);
	return 0;
}

int push_cursor_write(const char *dir, const char *store, const char *target,
		      const struct cursor_state *c, struct err *e)
{
	char path[PATH_MAX], new[PATH_MAX + 8];
	FILE *f;
	bool ok;

	path_of(dir, store, target, path);
	snprintf(new, sizeof(new), "%s.new", path);
	f = fopen(new, "we");
	ok = f &&
	     fprintf(f,
		     "sonde-push 1 %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
		     c->sent_ts, c->rows, c->missed_s, c->refused, c->trying_ts) > 0 &&
	     !fflush(f) && !fsync(fileno(f));
	if (f)
		ok = !fclose(f) && ok;
	if (ok && !rename(new, path))
		return 0;
	return err_set(e, -errno, EXIT_RUNTIME, "cannot write %s: %s", new, strerror(errno));
}
