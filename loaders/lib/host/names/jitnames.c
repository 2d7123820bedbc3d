/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/jitnames.h"

#include <errno.h>
#include <stddef.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/names/perfmap.h"

#define PATHS_MAX 512

int jitnames_read(const struct hostmaps_process *p, struct perfmap_stamp *stamp,
		  struct perfmap **out, bool *dump)
{
	const struct hostmaps_image *exe;
	const char *paths[PATHS_MAX];
	size_t n = hostmaps_files(p, paths, PATHS_MAX, &exe);

	return perfmap_read_any(p->tgid, p->nspid ? p->nspid : p->tgid, p->uid, paths, n, stamp,
				out, dump);
}

const char *jitnames_reason(int code)
{
	if (code == -EPERM)
		return "another user's file";
	if (code == -EFBIG)
		return "larger than 1 GiB";
	if (code == -E2BIG)
		return "more names than one process may have";
	return code == -EBADMSG ? "no jitdump of this process" : openin_reason(code);
}
