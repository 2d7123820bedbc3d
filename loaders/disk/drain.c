/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/drain.h"

#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/disk/lasting.h"
#include "loaders/disk/syncfile.h"
#include "loaders/disk/waitstack.h"
#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/bpf/run/who.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/disk.skel.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/facts/disk.h"
#include "schema/store/write/facts.h"

/* ---- rows ---- */

void drain_times(struct fact_row *row, int first, const uint32_t hist[DISK_SLOTS])
{
	uint64_t sums[DISK_STEPS] = {0};

	for (int i = 0; i < DISK_SLOTS; i++) {
		int step = i < DISK_STEP_0_BITS ? 0 : i - DISK_STEP_0_BITS + 1;

		sums[step < DISK_STEPS ? step : DISK_STEPS - 1] += hist[i];
	}
	for (int i = 0; i < DISK_STEPS; i++)
		if (sums[i])
			fact_put(row, first + i, sums[i]);
}

/* The kernel's enum req_op; numbers that changed meaning between versions are "other". */
static const char *op_word(uint32_t op)
{
	static const char *const words[] = {[0] = "read",    [1] = "write", [2] = "flush",
					    [3] = "discard", [5] = "erase", [9] = "zero"};

	return op < ARRAY_SIZE(words) && words[op] ? words[op] : "other";
}

size_t drain_most(const struct family_host *h, size_t n)
{
	return h->bucket_s >= FAMILY_ALWAYS_S ? n / 4 : n;
}

struct draining {
	struct hooks *k;
	struct devices *devices;
	struct files *files;
	struct family_host *h;
	int64_t utc_ns;
	uint32_t epoch;
};

_Static_assert(DISK_COMM == STACK_COMM_LEN, "the size that who_find reads");
static const struct who_id NO_ONE;

static void order_put(const struct draining *d, const struct disk_key *key,
		      const struct disk_sum *s, const struct who *who)
{
	struct fact_row row = {0};
	char disk[DEVICES_NAME];

	fact_put_text(&row, ORDER_DISK, devices_name(d->devices, key->major, key->minor, disk));
	fact_put_text(&row, ORDER_OP, op_word(key->op));
	fact_put(&row, ORDER_SEQUENTIAL, s->sequential);
	who_put(d->h, d->utc_ns, &ORDER_FACT, &row, who, ORDER_PROCESS, ORDER_CONTAINER);
}

/* false: the capture does not cover who asked. */
static bool block_put(const struct draining *d, const struct disk_key *key,
		      const struct disk_sum *s, bool named)
{
	struct who who = who_find(d->h, &key->who, NULL);
	struct fact_row row = {0};
	char disk[DEVICES_NAME];

	if (!who_covered(d->h, &who))
		return false;
	if (!named)
		who = who_find(d->h, &NO_ONE, NULL);
	fact_put_text(&row, BLOCK_DISK, devices_name(d->devices, key->major, key->minor, disk));
	fact_put_text(&row, BLOCK_OP, op_word(key->op));
	fact_put(&row, BLOCK_REQUESTS, s->requests);
	fact_put(&row, BLOCK_BYTES, s->bytes);
	fact_put(&row, BLOCK_ERRORS, s->errors);
	fact_put(&row, BLOCK_QUEUE, s->queue_ns / 1000);
	fact_put(&row, BLOCK_DEVICE, s->device_ns / 1000);
	drain_times(&row, BLOCK_T0, s->hist);
	who_put(d->h, d->utc_ns, &BLOCK_FACT, &row, &who, BLOCK_PROCESS, BLOCK_CONTAINER);
	if (s->sequential)
		order_put(d, key, s, &who);
	return true;
}

static uint64_t block_weight(const void *value)
{
	const struct disk_sum *s = value;

	return s->bytes + s->requests * 4096;
}

/* How many asked at a time, for the recording's summary. */
static void processes_count(struct family_host *h, const struct taken *t)
{
	struct idmap seen = {0};

	for (size_t i = 0; i < t->n; i++) {
		const struct disk_key *key = taken_key(t, i);

		if (key->who.tgid)
			idmap_set(&seen, key->who.tgid, 1);
	}
	h->processes = seen.n > h->processes ? seen.n : h->processes;
	idmap_release(&seen);
}

static void blocks_drain(const struct draining *d, const struct bpf_map *map, enum disk_made made)
{
	struct taken t = {.key_size = sizeof(struct disk_key),
			  .value_size = sizeof(struct disk_sum),
			  .epoch_at = offsetof(struct disk_key, epoch),
			  .epoch = d->epoch,
			  .weight = block_weight,
			  .made = hooks_made(d->k, made)};
	size_t n = 0;

	taken_take(&t, bpf_map__fd(map));
	processes_count(d->h, &t);
	for (size_t i = 0; i < t.n; i++)
		n += block_put(d, taken_key(&t, i), taken_value(&t, i),
			       n < drain_most(d->h, DRAIN_BLOCKS_MOST));
	taken_release(&t);
}

static bool is_contained(const struct draining *d, const struct who *who)
{
	return who->p && naming_container(d->h->naming, who->p);
}

/* A container's file has the path that the container sees, and a row that says which one of the
 * host that is; others have the host's. */
static void sync_path(const struct draining *d, const struct disk_sync_key *key, uint32_t fd,
		      const struct disk_sync *s, const struct who *who, char out[SYNCFILE_PATH])
{
	const struct files_id id = {.ino = key->ino, .dev = key->dev};
	bool contained = is_contained(d, who);
	char host[FILENAME_PATH], seen[FILENAME_PATH];

	if (files_is_one(d->files, &id, files_viewer(d->h, who),
			 bpf_map__fd(hooks_files(d->k).names), host)) {
		if (!contained) {
			snprintf(out, SYNCFILE_PATH, "%s", host);
			return;
		}
		if (files_seen(d->files, d->h, &id, who, host, seen)) {
			snprintf(out, SYNCFILE_PATH, "%s", seen);
			files_place(d->files, d->h, &id, who, host, d->utc_ns);
			return;
		}
	}
	syncfile_path(key, contained || layers_is_hosts(key->who.tgid) ? fd : SYNCFILE_NONE, s,
		      contained ? NULL : files_mounts(d->files, key->dev), out);
}

static bool sync_put(const struct draining *d, const struct disk_sync_key *key,
		     const struct disk_sync *s, bool named)
{
	struct who who = who_find(d->h, &key->who, NULL);
	struct fact_row row = {0};
	char path[SYNCFILE_PATH] = DRAIN_OTHER;

	if (!who_covered(d->h, &who) || key->call >= DISK_CALLS)
		return false;
	if (who.excluded)
		*path = 0;
	else if (named)
		sync_path(d, key, s->fd, s, &who, path);
	fact_put_text(&row, SYNC_FILE, path);
	fact_put_text(&row, SYNC_CALL, lasting_call_word(key->call));
	fact_put(&row, SYNC_CALLS, s->calls);
	fact_put(&row, SYNC_ERRORS, s->errors);
	fact_put(&row, SYNC_US, s->ns / 1000);
	drain_times(&row, SYNC_T0, s->hist);
	who_put(d->h, d->utc_ns, &SYNC_FACT, &row, &who, SYNC_PROCESS, SYNC_CONTAINER);
	return true;
}

static uint64_t sync_weight(const void *value)
{
	return ((const struct disk_sync *)value)->ns;
}

static void syncs_drain(const struct draining *d)
{
	struct taken t = {.key_size = sizeof(struct disk_sync_key),
			  .value_size = sizeof(struct disk_sync),
			  .epoch_at = offsetof(struct disk_sync_key, epoch),
			  .epoch = d->epoch,
			  .weight = sync_weight,
			  .made = hooks_made(d->k, DISK_MADE_SYNCS)};
	size_t n = 0;

	taken_take(&t, bpf_map__fd(d->k->skel->maps.disk_syncs));
	for (size_t i = 0; i < t.n; i++)
		n += sync_put(d, taken_key(&t, i), taken_value(&t, i),
			      n < drain_most(d->h, DRAIN_SYNCS_MOST));
	taken_release(&t);
}

static void lasting_put(const struct draining *d, const struct lasting *x, int64_t now_ns)
{
	const struct disk_sync_key *key = &x->longest.key;
	struct who who = who_find(d->h, &key->who, NULL);
	char path[SYNCFILE_PATH] = "";
	struct fact_row row = {0};

	if (!who_covered(d->h, &who) || key->call >= DISK_CALLS)
		return;
	if (!who.excluded)
		sync_path(d, key, x->longest.fd, NULL, &who, path);
	fact_put_text(&row, LASTING_FILE, path);
	fact_put_text(&row, LASTING_CALL, lasting_call_word(key->call));
	fact_put(&row, LASTING_CALLS, x->calls);
	fact_put(&row, LASTING_US, (uint64_t)(now_ns - (int64_t)x->longest.begin_ns) / 1000);
	who_put(d->h, d->utc_ns, &LASTING_FACT, &row, &who, LASTING_PROCESS, LASTING_CONTAINER);
}

struct looking {
	struct lasting_list list;
	int64_t now_ns;
};

static void call_take(void *ctx, const void *thread, const void *value)
{
	struct looking *l = ctx;
	struct disk_syncing x;

	(void)thread;
	memcpy(&x, value, sizeof(x));
	if (l->now_ns - (int64_t)x.begin_ns >= LASTING_NS)
		lasting_add(&l->list, &x);
}

static void lasting_drain(const struct draining *d)
{
	struct looking l = {.now_ns = clock_mono_ns()};

	hooks_syncing(d->k, call_take, &l);
	for (size_t i = 0; i < l.list.n; i++)
		lasting_put(d, &l.list.v[i], l.now_ns);
}

static void error_word(uint32_t error, char out[16])
{
	const char *name = error < 4096 ? strerrorname_np((int)error) : NULL;

	if (name)
		snprintf(out, 16, "%.15s", name);
	else
		snprintf(out, 16, "%u", error);
}

/* Opens of one command and container with one path and error: many short processes look for the
 * same file. */
struct opens {
	uint64_t n;
	size_t first; /* of what was taken */
};

struct opens_list {
	struct opens *list;
	size_t n, cap;
	struct idmap at;
};

static uint64_t open_weight(const void *value)
{
	uint64_t n;

	memcpy(&n, value, sizeof(n));
	return n;
}

static void opens_add(struct opens_list *l, const struct who *who, const struct disk_open_key *key,
		      uint64_t n, size_t nth)
{
	uint64_t h = hash_bytes(hash_u64(HASH_SEED, key->error), key->path, sizeof(key->path)), *at;
	bool fresh;

	h = who->p ? hash_str(hash_str(h, who->p->comm), who->p->cgroup) : hash_u64(h, 1);
	at = idmap_ref(&l->at, h, &fresh);
	if (fresh) {
		mem_grow(l->list, l->n, l->cap);
		*at = l->n;
		l->list[l->n++] = (struct opens){.first = nth};
	}
	l->list[*at].n += n;
}

static void open_put(const struct draining *d, const struct disk_open_key *key, uint64_t n,
		     bool named)
{
	struct who who = who_find(d->h, named ? &key->who : &NO_ONE, NULL);
	struct fact_row row = {0};
	char path[DISK_PATH + 1] = DRAIN_OTHER, error[16];

	if (named)
		snprintf(path, sizeof(path), "%.*s", who.excluded ? 0 : DISK_PATH, key->path);
	error_word(key->error, error);
	fact_put_text(&row, OPEN_PATH, path);
	fact_put_text(&row, OPEN_ERROR, error);
	fact_put(&row, OPEN_N, n);
	who_put(d->h, d->utc_ns, &OPEN_FACT, &row, &who, OPEN_PROCESS, OPEN_CONTAINER);
}

static int more_opens(const void *a, const void *b)
{
	const struct opens *x = a, *y = b;

	return x->n < y->n ? 1 : x->n > y->n ? -1 : 0;
}

/* sonde's own are left out: it asks /proc for processes that have ended. */
static void opens_drain(const struct draining *d, const struct bpf_map *map, enum disk_made made,
			size_t named)
{
	struct taken t = {.key_size = sizeof(struct disk_open_key),
			  .value_size = sizeof(uint64_t),
			  .epoch_at = offsetof(struct disk_open_key, epoch),
			  .epoch = d->epoch,
			  .weight = open_weight,
			  .made = hooks_made(d->k, made)};
	struct opens_list l = {0};

	taken_take(&t, bpf_map__fd(map));
	for (size_t i = 0; i < t.n; i++) {
		const struct disk_open_key *key = taken_key(&t, i);
		struct who who = who_find(d->h, &key->who, NULL);

		if (who.wanted && !(who.p && naming_is_self(d->h->naming, who.p)))
			opens_add(&l, &who, key, open_weight(taken_value(&t, i)), i);
	}
	if (l.n)
		qsort(l.list, l.n, sizeof(*l.list), more_opens);
	for (size_t i = 0; i < l.n; i++)
		open_put(d, taken_key(&t, l.list[i].first), l.list[i].n,
			 i < drain_most(d->h, named));
	idmap_release(&l.at);
	free(l.list);
	taken_release(&t);
}

void drain_epoch(struct hooks *k, struct devices *devices, struct files *files,
		 struct family_host *h, uint32_t epoch, int64_t utc_ns)
{
	const struct draining d = {.k = k,
				   .devices = devices,
				   .files = files,
				   .h = h,
				   .utc_ns = utc_ns,
				   .epoch = epoch};

	blocks_drain(&d, k->skel->maps.disk_sums, DISK_MADE_SUMS);
	blocks_drain(&d, k->skel->maps.disk_rest, DISK_MADE_REST);
	if (!k->files)
		return;
	syncs_drain(&d);
	lasting_drain(&d);
	opens_drain(&d, k->skel->maps.disk_opens, DISK_MADE_OPENS, DRAIN_OPENS_MOST);
	opens_drain(&d, k->skel->maps.disk_rest_opens, DISK_MADE_REST_OPENS, 0);
}

struct unseen {
	struct draining d;
	struct files *files;
};

static void unseen_take(void *ctx, const void *request, const void *value)
{
	struct unseen *u = ctx;
	struct disk_asked a;
	struct disk_key key;
	struct disk_sum s = {.requests = 1};

	(void)request;
	memcpy(&a, value, sizeof(a));
	if (!a.issue_ns || devices_in_flight(a.major, a.minor) != 0)
		return;
	s.bytes = a.bytes - a.done;
	key = (struct disk_key){.who = a.who, .major = a.major, .minor = a.minor, .op = a.op};
	block_put(&u->d, &key, &s, true);
	files_unseen(u->files, u->d.devices, u->d.h, &a, u->d.utc_ns);
}

void drain_unseen(struct hooks *k, struct devices *devices, struct files *files,
		  struct family_host *h, int64_t utc_ns)
{
	struct unseen u = {.d = {.k = k, .devices = devices, .h = h, .utc_ns = utc_ns},
			   .files = files};

	hooks_asked(k, unseen_take, &u);
}

/* Of the row that has this disk, sector and moment. */
static void stack_put(struct family_host *h, const struct disk_slow *r, const char *disk,
		      int64_t utc_ns)
{
	struct fact_row row = {0};
	char text[WAITSTACK_TEXT];

	waitstack_text(h, r->stack, r->frames < DISK_STACK ? r->frames : DISK_STACK, text);
	if (!*text)
		return;
	fact_put_text(&row, SLOWSTACK_DISK, disk);
	fact_put(&row, SLOWSTACK_SECTOR, r->sector);
	fact_put(&row, SLOWSTACK_AT, (uint64_t)(utc_ns / 1000));
	fact_put_text(&row, SLOWSTACK_STACK, text);
	store_fact(h->store, h->run, utc_ns, &SLOWSTACK_FACT, &row);
}

void drain_slow(struct devices *devices, struct family_host *h, const struct disk_slow *r)
{
	struct who who = who_find(h, &r->who, r->comm);
	int64_t utc = family_utc(h, (int64_t)r->done_ns);
	char disk[DEVICES_NAME], thread[DISK_COMM + 1];
	struct fact_row row = {0};

	if (!who_covered(h, &who))
		return;
	snprintf(thread, sizeof(thread), "%.*s", DISK_COMM, who.excluded ? "" : r->comm);
	fact_put_text(&row, SLOW_DISK, devices_name(devices, r->major, r->minor, disk));
	fact_put_text(&row, SLOW_OP, op_word(r->op));
	fact_put(&row, SLOW_SECTOR, r->sector);
	fact_put(&row, SLOW_AT, (uint64_t)(utc / 1000));
	fact_put_text(&row, SLOW_THREAD, thread);
	fact_put(&row, SLOW_BYTES, r->bytes);
	fact_put(&row, SLOW_QUEUE, r->queue_ns / 1000);
	fact_put(&row, SLOW_DEVICE, r->device_ns / 1000);
	fact_put(&row, SLOW_FAILED, r->failed);
	who_put(h, utc, &SLOW_FACT, &row, &who, SLOW_PROCESS, SLOW_CONTAINER);
	if (!who.excluded)
		stack_put(h, r, disk, utc);
}
