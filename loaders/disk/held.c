/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/disk/filename.h"
#include "loaders/lib/bpf/run/who.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/facts/disk.h"

#define BLOCK   512
#define DELETED " (deleted)"

struct held_file {
	struct disk_held found; /* of its oldest process */
	uint32_t last_tgid;     /* its descriptors follow each other */
	uint32_t holders;
	uint64_t bytes;
};

struct looking {
	struct held_file *list;
	size_t n, cap;
	struct idmap at;
};

static void found_take(void *ctx, const struct disk_held *x)
{
	struct looking *l = ctx;
	uint64_t id = hash_u64(hash_u64(HASH_SEED, x->ino), x->dev), *at;
	struct held_file *f;
	bool fresh;

	if (l->n >= HELD_KNOWN && !idmap_get(&l->at, id, NULL))
		return;
	at = idmap_ref(&l->at, id, &fresh);
	if (fresh) {
		mem_grow(l->list, l->n, l->cap);
		*at = l->n;
		l->list[l->n++] = (struct held_file){.found = *x};
	}
	f = &l->list[*at];
	if (f->last_tgid != x->who.tgid)
		f->holders++;
	f->last_tgid = x->who.tgid;
	if (x->who.start_ns < f->found.who.start_ns)
		f->found = *x;
}

static void link_of(const struct held_file *f, char out[64])
{
	snprintf(out, 64, "/proc/%u/fd/%u", f->found.who.tgid, f->found.fd);
}

static void size_read(struct held_file *f)
{
	struct statx st;
	char link[64];

	link_of(f, link);
	if (!statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_NLINK | STATX_BLOCKS, &st) &&
	    !st.stx_nlink)
		f->bytes = st.stx_blocks * BLOCK;
}

static int larger(const void *a, const void *b)
{
	const struct held_file *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* The path that it had. */
static void path_read(const struct held_file *f, char out[FILENAME_PATH])
{
	char link[64], path[PATH_MAX];
	size_t len, end = sizeof(DELETED) - 1;
	ssize_t n;

	link_of(f, link);
	n = readlink(link, path, sizeof(path) - 1);
	len = n > 0 ? (size_t)n : 0;
	if (len > end && !memcmp(path + len - end, DELETED, end))
		len -= end;
	filename_cut(path, len, out);
}

static void row_put(const struct held_file *f, const struct mounts *mounts, struct family_host *h,
		    int64_t utc_ns)
{
	struct who who = who_find(h, &f->found.who, NULL);
	char path[FILENAME_PATH] = "";
	struct fact_row row = {0};

	if (!who.wanted)
		return;
	if (!who.excluded)
		path_read(f, path);
	fact_put_text(&row, HELD_FILE, path);
	fact_put(&row, HELD_INO, f->found.ino);
	fact_put_text(&row, HELD_MOUNT, mounts_point(mounts, f->found.dev));
	fact_put(&row, HELD_BYTES, f->bytes);
	fact_put(&row, HELD_HOLDERS, f->holders);
	who_put(h, utc_ns, &HELD_FACT, &row, &who, HELD_PROCESS, HELD_CONTAINER);
}

void held_look(struct hooks *k, const struct mounts *mounts, struct family_host *h, int64_t utc_ns)
{
	struct looking l = {0};
	int err = hooks_held(k, found_take, &l);

	if (err && err != -ENOENT)
		log_debug("disk: cannot list deleted files that are open: %s", strerror(-err));
	for (size_t i = 0; i < l.n; i++)
		size_read(&l.list[i]);
	if (l.n)
		qsort(l.list, l.n, sizeof(*l.list), larger);
	for (size_t i = 0; i < l.n && i < HELD_MOST && l.list[i].bytes; i++)
		row_put(&l.list[i], mounts, h, utc_ns);
	idmap_release(&l.at);
	free(l.list);
}
