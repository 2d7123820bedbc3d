/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/filecalls.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/disk/drain.h"
#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/bpf/run/who.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/disk.skel.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/facts/disk.h"
#include "schema/store/write/facts.h"

/* Of 32-bit programs on x86. */
#define LOCKS_FCNTL_32   55
#define LOCKS_FLOCK_32   143
#define LOCKS_FCNTL64_32 221

static const struct who_id NO_ONE;

struct draining {
	struct hooks *k;
	struct files *f;
	struct family_host *h;
	int64_t utc_ns;
	uint32_t epoch;
};

/* Its host's path in `out`, or `other`; "": the capture shows nothing of who used it. */
static void name_find(const struct draining *d, uint64_t ino, uint32_t dev, const struct who *who,
		      const char *other, char out[FILENAME_PATH])
{
	int names = bpf_map__fd(hooks_files(d->k).names);

	snprintf(out, FILENAME_PATH, "%s", who->excluded ? "" : other ? other : DRAIN_OTHER);
	if (other || who->excluded || ino == DISK_OTHERS)
		return;
	if (!files_path(d->f, ino, dev, files_viewer(d->h, who), names, out))
		snprintf(out, FILENAME_PATH, DRAIN_OTHER);
}

/* ---- reads and writes ---- */

static const char *call_word(uint32_t call)
{
	static const char *const words[DISK_IOS] = {[DISK_READ] = "read",
						    [DISK_WRITE] = "write",
						    [DISK_RING_READ] = "ring_read",
						    [DISK_RING_WRITE] = "ring_write",
						    [DISK_RESIZE] = "resize"};

	return words[call];
}

/* ---- how many blocks a file had before the first call of the epoch that may make it larger ----
 */

struct firsts {
	struct first {
		uint64_t ns, blocks;
	} * list;
	size_t n, cap;
	struct idmap at; /* by file */
};

static bool makes_larger(uint32_t call)
{
	return call == DISK_WRITE || call == DISK_RING_WRITE || call == DISK_RESIZE;
}

static uint64_t file_hash(const struct disk_sync_key *key)
{
	return hash_u64(hash_u64(HASH_SEED, key->ino), key->dev);
}

static void first_add(struct firsts *f, const struct disk_sync_key *key, const struct disk_calls *s)
{
	bool fresh;
	uint64_t *at;

	if (!makes_larger(key->call) || key->ino == DISK_OTHERS)
		return;
	at = idmap_ref(&f->at, file_hash(key), &fresh);
	if (fresh) {
		*at = f->n;
		mem_grow(f->list, f->n, f->cap);
		f->list[f->n++] = (struct first){s->first_ns, s->blocks};
	} else if (s->first_ns < f->list[*at].ns) {
		f->list[*at] = (struct first){s->first_ns, s->blocks};
	}
}

/* By how much the file grew; 0: by nothing, or its first call of the epoch was counted already. */
static int64_t growth_of(const struct draining *d, const struct disk_sync_key *key,
			 const struct firsts *firsts)
{
	const struct files_id id = {.ino = key->ino, .dev = key->dev};
	uint64_t at = 0;

	if (!idmap_get(&firsts->at, file_hash(key), &at))
		return 0;
	return files_growth(d->f, &id, firsts->list[at].blocks);
}

/* `other`: the name of files past the limit; NULL: it is a file. */
static bool call_put(const struct draining *d, const struct disk_sync_key *key,
		     const struct disk_calls *s, const struct firsts *firsts, const char *other)
{
	struct who who = who_find(d->h, &key->who, NULL);
	const struct files_id id = {.ino = key->ino, .dev = key->dev};
	bool one = !other && key->ino != DISK_OTHERS;
	struct fact_row row = {0};
	char path[FILENAME_PATH];
	int64_t grew;

	if (!who_covered(d->h, &who) || key->call >= DISK_IOS)
		return false;
	name_find(d, key->ino, key->dev, &who, other, path);
	if (one && makes_larger(key->call)) {
		grew = growth_of(d, key, firsts); /* it may have got another name */
		name_find(d, key->ino, key->dev, &who, other, path);
		if (grew && !who.excluded)
			files_grew(d->h, &who, path, grew, d->utc_ns);
	}
	fact_put_text(&row, CALL_FILE, path);
	fact_put_text(&row, CALL_CALL, call_word(key->call));
	fact_put(&row, CALL_CALLS, s->calls);
	fact_put(&row, CALL_ERRORS, s->errors);
	fact_put(&row, CALL_BYTES, s->bytes);
	fact_put(&row, CALL_US, s->ns / 1000);
	drain_times(&row, CALL_T0, s->hist);
	who_put(d->h, d->utc_ns, &CALL_FACT, &row, &who, CALL_PROCESS, CALL_CONTAINER);
	if (one)
		files_place(d->f, d->h, &id, &who, path, d->utc_ns);
	return true;
}

/* What is slow comes first, then what is much: a call and a microsecond weigh as much as 4 KiB. Of
 * one that was made larger it is not known by how much: as 64 MiB. */
static uint64_t call_weight(const void *value)
{
	const struct disk_calls *s = value;

	return s->bytes + 4096 * s->calls + s->ns / 1000 * 4096 + (s->resizes ? 64 << 20 : 0);
}

/* Files past the limit: a row by process, call and folder. */
struct others {
	struct other {
		struct disk_sync_key key;
		struct disk_calls sum;
		char *name;
	} * list;
	size_t n, cap;
	struct idmap at;
};

static void other_add(struct others *o, const struct disk_sync_key *key, const struct disk_calls *s,
		      const char *name)
{
	uint64_t h = hash_u64(hash_bytes(HASH_SEED, &key->who, sizeof(key->who)), key->call), *at;
	struct disk_calls *sum;
	bool fresh;

	at = idmap_ref(&o->at, hash_str(h, name), &fresh);
	if (fresh) {
		mem_grow(o->list, o->n, o->cap);
		*at = o->n;
		o->list[o->n++] = (struct other){.key = *key, .name = mem_strdup(name)};
	}
	sum = &o->list[*at].sum;
	sum->calls += s->calls;
	sum->errors += s->errors;
	sum->bytes += s->bytes;
	sum->ns += s->ns;
	for (int i = 0; i < DISK_SLOTS; i++)
		sum->hist[i] += s->hist[i];
}

static void other_name(const struct draining *d, struct files_folders *folders,
		       const struct disk_sync_key *key, char out[FILENAME_PATH])
{
	const struct files_id id = {.ino = key->ino, .dev = key->dev};
	struct who who = who_find(d->h, &key->who, NULL);

	snprintf(out, FILENAME_PATH, "%s", FILES_OTHER);
	if (key->ino != DISK_OTHERS && who.wanted && !who.excluded)
		files_other(d->f, folders, d->h, &id, files_viewer(d->h, &who),
			    bpf_map__fd(hooks_files(d->k).names), out);
}

static void calls_drain(const struct draining *d, const struct bpf_map *map, enum disk_made made)
{
	struct taken t = {.key_size = sizeof(struct disk_sync_key),
			  .value_size = sizeof(struct disk_calls),
			  .epoch_at = offsetof(struct disk_sync_key, epoch),
			  .epoch = d->epoch,
			  .weight = call_weight,
			  .made = hooks_made(d->k, made)};
	size_t n = 0, most = drain_most(d->h, DRAIN_CALLS_MOST);
	struct others o = {0};
	struct files_folders folders = {0};
	struct firsts firsts = {0};
	char name[FILENAME_PATH];

	taken_take(&t, bpf_map__fd(map));
	for (size_t i = 0; i < t.n; i++)
		first_add(&firsts, taken_key(&t, i), taken_value(&t, i));
	for (size_t i = 0; i < t.n; i++) {
		const struct disk_sync_key *key = taken_key(&t, i);

		if (n < most && key->ino != DISK_OTHERS) {
			n += call_put(d, key, taken_value(&t, i), &firsts, NULL);
		} else {
			other_name(d, &folders, key, name);
			other_add(&o, key, taken_value(&t, i), name);
		}
	}
	for (size_t i = 0; i < o.n; i++) {
		call_put(d, &o.list[i].key, &o.list[i].sum, &firsts, o.list[i].name);
		free(o.list[i].name);
	}
	idmap_release(&firsts.at);
	free(firsts.list);
	idmap_release(&folders.rows);
	idmap_release(&o.at);
	free(o.list);
	taken_release(&t);
}

/* ---- locks ---- */

static const char *lock_word(uint32_t lock)
{
	static const char *const words[DISK_LOCKS] = {
		[DISK_FLOCK] = "flock", [DISK_POSIX] = "posix", [DISK_OFD] = "ofd"};

	return words[lock];
}

struct holder {
	uint32_t tgid;
	struct hostmaps_process *p; /* NULL: not known */
};

static void holder_take(void *ctx, struct hostmaps_process *p)
{
	struct holder *x = ctx;

	if (p->tgid == x->tgid)
		x->p = p;
}

/* It may have ended since. */
static struct who holder_find(const struct draining *d, int32_t holder)
{
	struct holder x = {.tgid = holder > 0 ? (uint32_t)holder : 0};
	struct who_id id = {.tgid = x.tgid};

	if (x.tgid)
		x.p = hostmaps_running(d->h->maps, x.tgid);
	if (x.tgid && !x.p)
		hostmaps_each_known(d->h->maps, holder_take, &x);
	if (!x.p)
		return who_find(d->h, &id, NULL);
	return (struct who){.id = id, .p = x.p, .excluded = naming_excludes(d->h->naming, x.p)};
}

/* Not `named`: past the limit, of no process. false: the capture does not cover who waited. */
static bool lock_put(const struct draining *d, const struct disk_lock_key *key,
		     const struct disk_locks *s, uint64_t lasting_us, bool named)
{
	struct who who = who_find(d->h, &key->who, NULL),
		   holder = holder_find(d, named ? key->holder : 0);
	struct fact_row row = {0};
	char path[FILENAME_PATH];
	int rc = -ESTALE;

	if (!who_covered(d->h, &who) || key->lock >= DISK_LOCKS)
		return false;
	if (!named)
		who = who_find(d->h, &NO_ONE, NULL);
	name_find(d, key->ino, key->dev, &who, named ? NULL : DRAIN_OTHER, path);
	fact_put_text(&row, LOCK_FILE, path);
	fact_put_text(&row, LOCK_LOCK, lock_word(key->lock));
	if (s) {
		fact_put(&row, LOCK_WAITS, s->waits);
		fact_put(&row, LOCK_ERRORS, s->errors);
		fact_put(&row, LOCK_US, s->ns / 1000);
		fact_put(&row, LOCK_LONGEST, s->longest_ns / 1000);
	}
	if (lasting_us)
		fact_put(&row, LOCK_LASTING, lasting_us);
	for (int i = 0; i < 3 && rc == -ESTALE; i++) {
		fact_put(&row, LOCK_PROCESS, who_row(d->h, &who));
		fact_put(&row, LOCK_HOLDER, who_row(d->h, &holder));
		fact_put(&row, LOCK_CONTAINER,
			 who.p && !who.excluded ? naming_container(d->h->naming, who.p) : 0);
		rc = store_fact(d->h->store, d->h->run, d->utc_ns, &LOCK_FACT, &row);
	}
	d->h->added += rc == 0;
	d->h->refused += rc == -ESTALE;
	if (named)
		files_place(d->f, d->h, &(struct files_id){.ino = key->ino, .dev = key->dev}, &who,
			    path, d->utc_ns);
	return true;
}

static uint64_t lock_weight(const void *value)
{
	return ((const struct disk_locks *)value)->ns;
}

static void locks_drain(const struct draining *d)
{
	struct taken t = {.key_size = sizeof(struct disk_lock_key),
			  .value_size = sizeof(struct disk_locks),
			  .epoch_at = offsetof(struct disk_lock_key, epoch),
			  .epoch = d->epoch,
			  .weight = lock_weight,
			  .made = hooks_made(d->k, DISK_MADE_LOCKS)};
	size_t n = 0;

	taken_take(&t, bpf_map__fd(d->k->skel->maps.disk_locks));
	for (size_t i = 0; i < t.n; i++)
		n += lock_put(d, taken_key(&t, i), taken_value(&t, i), 0,
			      n < drain_most(d->h, DRAIN_LOCKS_MOST));
	taken_release(&t);
}

/* Does that thread still wait in a call for a lock? The kernel may have run no program when the
 * wait ended (docs/decisions/0282). What cannot be read is taken for one that does. */
static bool lock_lasts(uint64_t thread)
{
	static const long calls[] = {SYS_flock, SYS_fcntl, LOCKS_FLOCK_32, LOCKS_FCNTL_32,
				     LOCKS_FCNTL64_32};
	char path[64], text[64] = "";
	cleanup_fd int fd = -1;
	char *end;
	long nr;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/syscall", (unsigned)(thread >> 32),
		 (unsigned)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		return errno != ESRCH;
	nr = strtol(text, &end, 10);
	if (end == text) /* it runs, or is about to: it may have been given the lock just now */
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (nr == calls[i])
			return true;
	return false;
}

struct lasting_locks {
	struct hooks *k;
	struct disk_locking list[DRAIN_LOCKS_MOST];
	size_t n;
	int64_t now_ns;
};

static bool is_same(const struct disk_lock_key *a, const struct disk_lock_key *b)
{
	return !memcmp(&a->who, &b->who, sizeof(a->who)) && a->ino == b->ino && a->dev == b->dev &&
	       a->lock == b->lock && a->holder == b->holder;
}

/* Of several threads of a process that wait for the same, the one that has waited longest. */
static void lasting_take(void *ctx, const void *thread, const void *value)
{
	struct lasting_locks *l = ctx;
	struct disk_locking x;
	uint64_t id;

	memcpy(&id, thread, sizeof(id));
	memcpy(&x, value, sizeof(x));
	if (l->now_ns - (int64_t)x.begin_ns < FILECALLS_LASTING_NS)
		return;
	if (!lock_lasts(id)) {
		hooks_locking_over(l->k, id, x.begin_ns);
		return;
	}
	for (size_t i = 0; i < l->n; i++)
		if (is_same(&l->list[i].key, &x.key)) {
			if (x.begin_ns < l->list[i].begin_ns)
				l->list[i].begin_ns = x.begin_ns;
			return;
		}
	if (l->n < DRAIN_LOCKS_MOST)
		l->list[l->n++] = x;
}

static void lasting_drain(const struct draining *d)
{
	struct lasting_locks l = {.k = d->k, .now_ns = clock_mono_ns()};

	hooks_locking(d->k, lasting_take, &l);
	for (size_t i = 0; i < l.n; i++)
		lock_put(d, &l.list[i].key, NULL,
			 (uint64_t)(l.now_ns - (int64_t)l.list[i].begin_ns) / 1000, true);
}

void filecalls_drain(struct hooks *k, struct files *f, struct family_host *h, uint32_t epoch,
		     int64_t utc_ns)
{
	const struct draining d = {.k = k, .f = f, .h = h, .utc_ns = utc_ns, .epoch = epoch};

	if (k->calls) {
		calls_drain(&d, k->skel->maps.disk_calls, DISK_MADE_CALLS);
		calls_drain(&d, k->skel->maps.disk_rest_calls, DISK_MADE_REST_CALLS);
	}
	if (k->files) {
		locks_drain(&d);
		lasting_drain(&d);
	}
}
