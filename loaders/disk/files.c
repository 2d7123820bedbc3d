/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/files.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "loaders/disk/drain.h"
#include "loaders/disk/filename.h"
#include "loaders/lib/bpf/load/mapread.h"
#include "loaders/lib/bpf/run/who.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/facts/disk.h"

#define ROUNDS_KEPT 600 /* epochs in which a file is not named: then it is forgotten */
#define BLOCK       512
#define MINOR_BITS  20
#define MEMFD       "memfd:" /* a file of memory: its name begins so */

struct files_known {
	struct files_id id;
	char *path;
	char *below;     /* the root of its file system; "": only the end of it is known */
	bool whole;      /* the path is the host's; else it has no size */
	bool sized;      /* blocks are known */
	uint64_t blocks; /* at the last look */
	uint32_t round;  /* when it was used last */
	UT_hash_handle hh;
};

static void known_del(struct files *f, struct files_known *k)
{
	HASH_DEL(f->known, k);
	free(k->path);
	free(k->below);
	free(k);
}

const struct mounts *files_mounts(struct files *f, uint32_t dev)
{
	if (f->mounts_round == f->round || mounts_has(&f->mounts, dev))
		return &f->mounts;
	mounts_read(&f->mounts);
	f->mounts_round = f->round;
	return &f->mounts;
}

/* Where the host has it. What lies in an overlay lies in one of its folders; a container's is not
 * always mounted where the host sees it. */
static bool host_path(struct files *f, uint32_t dev, const char *below, uint32_t pid, char *out,
		      size_t size)
{
	const struct mounts *host = files_mounts(f, dev);
	const struct mounts_one *x = mounts_find(host, dev, below);

	if (!x && pid) {
		const struct mounts *own = layers_mounts(&f->layers, pid);

		x = own ? mounts_find(own, dev, below) : NULL;
		if (x && !x->layers)
			return false;
	}
	if (x && x->layers && layers_host(x, below, out, size))
		return true;
	return mounts_path(host, dev, below, out, size);
}

/* Rule 1: "dm-4:/data/x", of what the host has not mounted. false: no room. */
static bool device_path(struct files *f, uint32_t dev, const char *below, char out[FILENAME_PATH])
{
	char name[DEVICES_NAME];
	int n;

	devices_name(f->devices, dev >> MINOR_BITS, dev & ((1u << MINOR_BITS) - 1), name);
	n = snprintf(out, FILENAME_PATH, "%s:%s", name, below);
	return n > 0 && n < FILENAME_PATH;
}

/* Its path, by the names that were read since the last look: it may have got another one. */
static void path_find(struct files *f, struct files_known *k, uint32_t pid, int names_fd)
{
	const struct disk_inode id = {.ino = k->id.ino, .dev = k->id.dev};
	char below[FILENAME_PATH], path[FILENAME_PATH];
	struct disk_names s;

	if (!mapread_take_one(names_fd, &id, &s) || !*s.names[0])
		return;
	free(k->path);
	free(k->below);
	k->whole = filename_join(s.names[0], DISK_DEEP, DISK_LONG, below);
	if (!strncmp(s.names[0], MEMFD, sizeof(MEMFD) - 1)) { /* it is its own root */
		snprintf(path, sizeof(path), "%.*s", DISK_LONG, s.names[0]);
		k->whole = false;
		k->path = mem_strdup(path);
		k->below = mem_strdup("");
		return;
	}
	k->below = mem_strdup(k->whole ? below : "");
	if (k->whole && host_path(f, k->id.dev, below, pid, path, sizeof(path))) {
		k->path = mem_strdup(path);
		return;
	}
	if (!k->whole || !device_path(f, k->id.dev, below, path))
		snprintf(path, sizeof(path), "%s", below);
	k->whole = false;
	k->path = mem_strdup(path);
}

static struct files_known *known_new(struct files *f, const struct files_id *id)
{
	struct files_known *k = mem_alloc(sizeof(*k));

	*k = (struct files_known){.id = *id, .path = mem_strdup(""), .below = mem_strdup("")};
	HASH_ADD(hh, f->known, id, sizeof(k->id), k);
	return k;
}

static struct files_known *known_of(struct files *f, uint64_t ino, uint32_t dev, uint32_t pid,
				    int names_fd)
{
	struct files_id id = {.ino = ino, .dev = dev};
	struct files_known *k;

	HASH_FIND(hh, f->known, &id, sizeof(id), k);
	k = k ? k : known_new(f, &id);
	k->round = f->round;
	path_find(f, k, pid, names_fd);
	return k;
}

struct viewer {
	const struct hostmaps_process *of;
	uint32_t tgid;
};

static void viewer_take(void *ctx, struct hostmaps_process *p)
{
	struct viewer *v = ctx;

	if (!v->tgid && !strcmp(p->cgroup, v->of->cgroup))
		v->tgid = p->tgid;
}

uint32_t files_viewer(struct family_host *h, const struct who *who)
{
	struct viewer v = {.of = who->p};

	if (!who->p || !naming_container(h->naming, who->p))
		return 0;
	if (who->p->to_ns == UINT64_MAX)
		return who->id.tgid;
	hostmaps_each(h->maps, viewer_take, &v);
	return v.tgid;
}

bool files_path(struct files *f, uint64_t ino, uint32_t dev, uint32_t pid, int names_fd,
		char out[FILENAME_PATH])
{
	const struct files_known *k = known_of(f, ino, dev, pid, names_fd);

	snprintf(out, FILENAME_PATH, "%s", k->path);
	return *out;
}

bool files_is_one(struct files *f, const struct files_id *id, uint32_t pid, int names_fd,
		  char out[FILENAME_PATH])
{
	const struct files_known *k = known_of(f, id->ino, id->dev, pid, names_fd);

	snprintf(out, FILENAME_PATH, "%s", *k->below ? k->path : "");
	return *out;
}

/* "/a/b" -> "/a/~other" */
static void folder_other(const char *path, char out[FILENAME_PATH])
{
	const char *last = strrchr(path, '/');

	if (last && last - path + sizeof(FILES_OTHER) < FILENAME_PATH)
		snprintf(out, FILENAME_PATH, "%.*s/" FILES_OTHER, (int)(last - path), path);
}

void files_other(struct files *f, struct files_folders *o, const struct family_host *h,
		 const struct files_id *id, uint32_t pid, int names_fd, char out[FILENAME_PATH])
{
	char folder[FILENAME_PATH] = "";
	struct files_known *k;
	bool fresh;

	snprintf(out, FILENAME_PATH, FILES_OTHER);
	HASH_FIND(hh, f->known, id, sizeof(*id), k);
	if (o->looked++ >= drain_most(h, FILES_LOOKED) ||
	    (!k && HASH_COUNT(f->known) >= 2 * FILES_KNOWN))
		return;
	k = known_of(f, id->ino, id->dev, pid, names_fd);
	if (*k->below)
		folder_other(k->path, folder);
	if (!*folder)
		return;
	if (o->rows.n >= drain_most(h, FILES_FOLDERS) &&
	    !idmap_get(&o->rows, hash_str(HASH_SEED, folder), NULL))
		return;
	idmap_ref(&o->rows, hash_str(HASH_SEED, folder), &fresh);
	snprintf(out, FILENAME_PATH, "%s", folder);
}

bool files_seen(struct files *f, struct family_host *h, const struct files_id *id,
		const struct who *who, const char *path, char out[FILENAME_PATH])
{
	uint32_t viewer = who->excluded ? 0 : files_viewer(h, who);
	struct files_known *k = NULL;
	const struct mounts *own;

	HASH_FIND(hh, f->known, id, sizeof(*id), k);
	if (!k || !*k->below || !viewer)
		return false;
	own = layers_mounts(&f->layers, viewer);
	return own && layers_seen(own, k->id.dev, k->below, path, out, FILENAME_PATH);
}

void files_place(struct files *f, struct family_host *h, const struct files_id *id,
		 const struct who *who, const char *path, int64_t utc_ns)
{
	char seen[FILENAME_PATH];
	struct fact_row row = {0};

	if (!files_seen(f, h, id, who, path, seen) || !strcmp(seen, path))
		return;
	fact_put_text(&row, PLACE_FILE, path);
	fact_put_text(&row, PLACE_SEEN, seen);
	who_put(h, utc_ns, &PLACE_FACT, &row, who, PLACE_PROCESS, PLACE_CONTAINER);
}

/* As the first process sees it: sonde may run in a container. */
static const char *const ROOTS[] = {"/proc/1/root", ""};

static bool stat_read(const char *path, uint64_t ino, struct statx *st)
{
	int flags = AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
	char at[FILENAME_PATH + 16];

	for (size_t i = 0; i < ARRAY_SIZE(ROOTS); i++) {
		snprintf(at, sizeof(at), "%s%s", ROOTS[i], path);
		if (!statx(AT_FDCWD, at, flags, STATX_INO | STATX_BLOCKS, st))
			return st->stx_ino == ino;
	}
	return false;
}

/* The entry of a folder that has this number, in `name`; FILES_ENTRIES are looked at. */
static bool entry_find(DIR *dir, uint64_t ino, char name[NAME_MAX + 1])
{
	const struct dirent *e;

	for (int i = 0; i < FILES_ENTRIES && (e = readdir(dir)); i++)
		if (e->d_ino == ino) {
			snprintf(name, NAME_MAX + 1, "%s", e->d_name);
			return true;
		}
	return false;
}

static void below_rename(struct files_known *k, const char *name)
{
	const char *last = strrchr(k->below, '/');
	char below[FILENAME_PATH + NAME_MAX + 1];

	if (!last)
		return;
	snprintf(below, sizeof(below), "%.*s/%s", (int)(last - k->below), k->below, name);
	free(k->below);
	k->below = mem_strdup(below);
}

/* Rule 3: the file has another name in its folder by now. */
static bool renamed_find(struct files *f, struct files_known *k, struct statx *st)
{
	size_t folder = (size_t)(strrchr(k->path, '/') - k->path);
	char name[NAME_MAX + 1], path[FILENAME_PATH + NAME_MAX + 1];
	bool found = false;

	if (f->folders++ >= FILES_RENAMED)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ROOTS) && !found; i++) {
		DIR *dir;

		snprintf(path, sizeof(path), "%s%.*s/", ROOTS[i], (int)folder, k->path);
		dir = opendir(path);
		found = dir && entry_find(dir, k->id.ino, name);
		if (dir)
			closedir(dir);
	}
	if (!found)
		return false;
	snprintf(path, sizeof(path), "%.*s/%s", (int)folder, k->path, name);
	if (strlen(path) >= FILENAME_PATH || !stat_read(path, k->id.ino, st))
		return false;
	free(k->path);
	k->path = mem_strdup(path);
	below_rename(k, name);
	return true;
}

static bool blocks_read(struct files *f, struct files_known *k, struct statx *st)
{
	if (!k->whole || mounts_waits(&f->mounts, k->id.dev))
		return false;
	return stat_read(k->path, k->id.ino, st) || renamed_find(f, k, st);
}

/* The file that has the blocks: an overlay's is one of its layer, which is known by itself, too. */
static struct files_known *sized_of(struct files *f, struct files_known *k, const struct statx *st)
{
	struct files_id id = {.ino = st->stx_ino,
			      .dev = st->stx_dev_major << MINOR_BITS | st->stx_dev_minor};
	struct files_known *x;

	if (id.ino == k->id.ino && id.dev == k->id.dev)
		return k;
	HASH_FIND(hh, f->known, &id, sizeof(id), x);
	x = x ? x : known_new(f, &id);
	x->round = f->round;
	return x;
}

/* By how much it grew since the last look. 0: it cannot be seen. */
static int64_t growth(struct files *f, struct files_known *k, uint64_t blocks)
{
	struct statx st;
	uint64_t was;

	if (!blocks_read(f, k, &st)) {
		k->sized = false;
		return 0;
	}
	k = sized_of(f, k, &st);
	was = k->sized ? k->blocks : blocks;
	k->blocks = st.stx_blocks;
	k->sized = true;
	return ((int64_t)k->blocks - (int64_t)was) * BLOCK;
}

int64_t files_growth(struct files *f, const struct files_id *id, uint64_t blocks)
{
	struct files_known *k = NULL;

	HASH_FIND(hh, f->known, id, sizeof(*id), k);
	return k ? growth(f, k, blocks) : 0;
}

void files_grew(struct family_host *h, const struct who *who, const char *path, int64_t bytes,
		int64_t utc_ns)
{
	struct fact_row row = {0};

	fact_put_text(&row, FILE_NAME, path);
	fact_put_text(&row, FILE_DISK, "");
	if (bytes > 0)
		fact_put(&row, FILE_GROWN, (uint64_t)bytes);
	else
		fact_put(&row, FILE_SHRUNK, (uint64_t)-bytes);
	who_put(h, utc_ns, &FILE_FACT, &row, who, FILE_PROCESS, FILE_CONTAINER);
}

struct draining {
	struct files *f;
	struct devices *devices;
	struct family_host *h;
	int64_t utc_ns;
	int names_fd;
	struct files_folders *others;
};

/* The file's text; its growth, if this row is the first that made it dirty. */
static void file_name(const struct draining *d, const struct disk_file_key *key,
		      const struct disk_file *s, const struct who *who, char out[FILENAME_PATH],
		      int64_t *grew)
{
	struct files_known *k;
	char name[DEVICES_NAME];

	*out = 0;
	if (!key->ino) {
		if (key->dev)
			snprintf(out, FILENAME_PATH, "/dev/%s",
				 devices_name(d->devices, key->dev >> MINOR_BITS,
					      key->dev & ((1u << MINOR_BITS) - 1), name));
		return;
	}
	k = known_of(d->f, key->ino, key->dev, files_viewer(d->h, who), d->names_fd);
	if (s->dirty_bytes)
		*grew = growth(d->f, k, s->blocks);
	snprintf(out, FILENAME_PATH, "%s", *k->path ? k->path : DRAIN_OTHER);
}

/* "": the capture shows nothing of who used it. */
static void other_name(const struct draining *d, const struct disk_file_key *key,
		       const struct who *who, char out[FILENAME_PATH])
{
	const struct files_id id = {.ino = key->ino, .dev = key->dev};

	snprintf(out, FILENAME_PATH, "%s", who->excluded ? "" : FILES_OTHER);
	if (!who->excluded && key->ino != DISK_OTHERS)
		files_other(d->f, d->others, d->h, &id, files_viewer(d->h, who), d->names_fd, out);
}

static void number_put(struct fact_row *row, int column, uint64_t n)
{
	if (n)
		fact_put(row, column, n);
}

/* false: the capture does not cover who did it. */
static bool file_put(const struct draining *d, const struct disk_file_key *key,
		     const struct disk_file *s, bool named)
{
	struct who who = who_find(d->h, &key->who, NULL);
	char path[FILENAME_PATH] = "", disk[DEVICES_NAME] = "";
	struct fact_row row = {0};
	int64_t grew = 0;

	if (!who_covered(d->h, &who))
		return false;
	if ((named || !key->ino) && key->ino != DISK_OTHERS && !who.excluded)
		file_name(d, key, s, &who, path, &grew);
	else
		other_name(d, key, &who, path);
	if (key->major || key->minor)
		devices_name(d->devices, key->major, key->minor, disk);
	fact_put_text(&row, FILE_NAME, path);
	fact_put_text(&row, FILE_DISK, disk);
	number_put(&row, FILE_READS, s->reads);
	number_put(&row, FILE_READ, s->read_bytes);
	number_put(&row, FILE_WRITES, s->writes);
	number_put(&row, FILE_WRITTEN, s->write_bytes);
	number_put(&row, FILE_DIRTY, s->dirty_bytes);
	number_put(&row, FILE_GROWN, grew > 0 ? (uint64_t)grew : 0);
	number_put(&row, FILE_SHRUNK, grew < 0 ? (uint64_t)-grew : 0);
	who_put(d->h, d->utc_ns, &FILE_FACT, &row, &who, FILE_PROCESS, FILE_CONTAINER);
	if (named && key->ino && key->ino != DISK_OTHERS)
		files_place(d->f, d->h, &(struct files_id){.ino = key->ino, .dev = key->dev}, &who,
			    path, d->utc_ns);
	return true;
}

static uint64_t file_weight(const void *value)
{
	const struct disk_file *s = value;

	return s->read_bytes + s->write_bytes + s->dirty_bytes;
}

static void map_drain(struct draining *d, const struct bpf_map *map, uint32_t *made, uint32_t epoch)
{
	struct taken t = {.key_size = sizeof(struct disk_file_key),
			  .value_size = sizeof(struct disk_file),
			  .epoch_at = offsetof(struct disk_file_key, epoch),
			  .epoch = epoch,
			  .weight = file_weight,
			  .made = made};
	size_t n = 0;

	taken_take(&t, bpf_map__fd(map));
	for (size_t i = 0; i < t.n; i++)
		n += file_put(d, taken_key(&t, i), taken_value(&t, i),
			      n < drain_most(d->h, FILES_MOST));
	taken_release(&t);
}

void files_drain(struct files *f, const struct hooks_files *maps, struct devices *devices,
		 struct family_host *h, uint32_t epoch, int64_t utc_ns)
{
	struct files_folders others = {0};
	struct draining d = {.f = f,
			     .devices = devices,
			     .h = h,
			     .utc_ns = utc_ns,
			     .names_fd = bpf_map__fd(maps->names),
			     .others = &others};

	map_drain(&d, maps->sums, maps->sums_made, epoch);
	map_drain(&d, maps->rest, maps->rest_made, epoch);
	idmap_release(&others.rows);
}

void files_epoch(struct files *f)
{
	f->round++;
	f->folders = 0;
}

void files_unseen(struct files *f, struct devices *devices, struct family_host *h,
		  const struct disk_asked *a, int64_t utc_ns)
{
	const struct draining d = {
		.f = f, .devices = devices, .h = h, .utc_ns = utc_ns, .names_fd = -1};
	const struct disk_file_key key = {.who = a->who, .major = a->major, .minor = a->minor};
	struct disk_file s = {0};

	if (a->op > 1 || a->bytes == a->done) /* as the programs have it: read, write */
		return;
	*(a->op ? &s.writes : &s.reads) = 1;
	*(a->op ? &s.write_bytes : &s.read_bytes) = a->bytes - a->done;
	file_put(&d, &key, &s, true);
}

void files_minute(struct files *f)
{
	bool crowded = HASH_COUNT(f->known) > FILES_KNOWN;
	struct files_known *k, *next;

	mounts_read(&f->mounts);
	layers_forget(&f->layers);
	HASH_ITER (hh, f->known, k, next)
		if (crowded ? k->round != f->round : f->round - k->round > ROUNDS_KEPT)
			known_del(f, k);
}

void files_release(struct files *f)
{
	struct files_known *k, *next;

	HASH_ITER (hh, f->known, k, next)
		known_del(f, k);
	mounts_release(&f->mounts);
	layers_forget(&f->layers);
}
