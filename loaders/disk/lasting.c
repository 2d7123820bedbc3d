/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/lasting.h"

#include <string.h>

const char *lasting_call_word(uint32_t call)
{
	static const char *const words[DISK_CALLS] = {
		[DISK_FSYNC] = "fsync",
		[DISK_FDATASYNC] = "fdatasync",
		[DISK_SYNC_RANGE] = "sync_file_range",
		[DISK_SYNCFS] = "syncfs",
	};

	return call < DISK_CALLS ? words[call] : "";
}

static bool is_same(const struct disk_sync_key *a, const struct disk_sync_key *b)
{
	return !memcmp(&a->who, &b->who, sizeof(a->who)) && a->ino == b->ino && a->dev == b->dev &&
	       a->call == b->call;
}

void lasting_add(struct lasting_list *l, const struct disk_syncing *x)
{
	struct lasting *latest = NULL;

	for (size_t i = 0; i < l->n; i++) {
		struct lasting *y = &l->v[i];

		if (is_same(&y->longest.key, &x->key)) {
			y->calls++;
			if (x->begin_ns < y->longest.begin_ns)
				y->longest = *x;
			return;
		}
		if (!latest || y->longest.begin_ns > latest->longest.begin_ns)
			latest = y;
	}
	if (l->n < LASTING_MOST)
		latest = &l->v[l->n++];
	else if (latest->longest.begin_ns <= x->begin_ns)
		return;
	*latest = (struct lasting){.longest = *x, .calls = 1};
}
