/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/hostnames.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/openin.h"
#include "loaders/net/hostsfile.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/facts/net.h"
#include "schema/store/write/facts.h"

#define TOLD_MOST 65536

static void file_release(struct hostnames_file *f)
{
	for (size_t i = 0; i < f->names.cap; i++)
		if (f->names.slots[i].used)
			free((void *)(uintptr_t)f->names.slots[i].value);
	idmap_release(&f->names);
}

static void files_clear(struct hostnames *h)
{
	for (size_t i = 0; i < h->n; i++)
		file_release(&h->files[i]);
	h->n = 0;
	idmap_clear(&h->file_of);
}

void hostnames_release(struct hostnames *h)
{
	files_clear(h);
	idmap_release(&h->file_of);
	idmap_release(&h->told);
}

static void take(void *ctx, const char *address, const char *name)
{
	struct hostnames_file *f = ctx;
	bool fresh;
	uint64_t *at;

	if (f->names.n >= HOSTNAMES_ENTRIES)
		return;
	at = idmap_ref(&f->names, hash_str(HASH_SEED, address), &fresh);
	if (fresh)
		*at = (uintptr_t)mem_strdup(name);
}

static uint64_t id_of(const struct stat *st)
{
	uint64_t h = hash_u64(hash_u64(HASH_SEED, (uint64_t)st->st_dev), (uint64_t)st->st_ino);

	return hash_u64(hash_u64(h, (uint64_t)st->st_size),
			(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec);
}

/* Its place + 1; 0: it cannot be read. */
static size_t file_read(struct hostnames *h, uint32_t pid)
{
	cleanup_fd int root = openin_root(pid), fd = -1;
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len = 0;
	uint64_t id;

	if (root >= 0)
		fd = openin(root, "/etc/hosts", HOSTNAMES_BYTES, &st);
	if (fd < 0)
		return 0;
	id = id_of(&st);
	for (size_t i = 0; i < h->n; i++)
		if (h->files[i].id == id)
			return i + 1;
	if (h->n == HOSTNAMES_FILES)
		files_clear(h);
	if (openin_read(fd, (size_t)st.st_size, &text, &len))
		return 0;
	h->files[h->n] = (struct hostnames_file){.id = id};
	hostsfile_parse(text, len, take, &h->files[h->n]);
	return ++h->n;
}

static const struct hostnames_file *file_of(struct hostnames *h, const struct net_owner *who,
					    int64_t now_ns)
{
	uint64_t key = hash_u64(hash_u64(HASH_SEED, who->start_ns), who->tgid), at;

	if (now_ns - h->looked_ns > HOSTNAMES_NS) {
		idmap_clear(&h->file_of);
		h->looked_ns = now_ns;
	}
	if (!idmap_get(&h->file_of, key, &at)) {
		at = file_read(h, who->tgid);
		idmap_set(&h->file_of, key, at);
	}
	return at && at <= h->n ? &h->files[at - 1] : NULL;
}

/* NULL: it has no name, or was stored in this hour. */
static const char *news(struct hostnames *h, const struct net_owner *who, const char *address,
			int64_t now_ns, int64_t hour)
{
	uint64_t hash = hash_str(HASH_SEED, address),
		 key = hash_u64(hash_u64(hash, who->start_ns), who->tgid), name;
	const struct hostnames_file *f;

	if (h->hour != hour || h->told.n > TOLD_MOST)
		idmap_clear(&h->told);
	h->hour = hour;
	if (!who->start_ns || idmap_get(&h->told, key, &name))
		return NULL;
	f = file_of(h, who, now_ns);
	if (!f || !idmap_get(&f->names, hash, &name))
		return NULL;
	idmap_set(&h->told, key, 1);
	return (const char *)(uintptr_t)name;
}

void hostnames_store(struct hostnames *n, struct family_host *h, struct store_rows_proc *who,
		     const char *address, int64_t ts)
{
	const char *name = news(n, &who->as, address, clock_boot_ns(), ts / 3600);
	struct fact_row row = {0};
	int err = -1;

	/* after the epoch changed, ids are made again */
	for (int i = 0; name && i < 3 && err; i++) {
		row.set = 0;
		fact_put(&row, PEER_NAME_PROCESS, procs_row(who, h));
		fact_put_text(&row, PEER_NAME_ADDRESS, address);
		fact_put_text(&row, PEER_NAME_NAME, name);
		fact_put_text(&row, PEER_NAME_HOW, "hosts");
		fact_put(&row, PEER_NAME_COUNT, 1);
		err = store_fact(h->store, h->run, ts * NSEC_PER_SEC, &PEER_NAME_FACT, &row);
	}
	h->added += name && !err;
	h->refused += name && err;
}
