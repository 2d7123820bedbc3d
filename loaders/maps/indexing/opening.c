/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/indexing/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"

#define LINK_MAX_BYTES 4112 /* a path and " (deleted)" */
#define TRIES_MAX      8    /* processes that are tried for one file */

static bool same_root(const struct root_id *a, const struct root_id *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->mntns == b->mntns;
}

/* Do not ask a root again whose file system did not answer: each attempt would block us. Our own
 * root is an exception: one mount (a user's sshfs) must not cost all other files their names;
 * there the number of stuck openings is the limit. */
static bool is_mute(const struct opening *op, const struct root_id *root)
{
	for (size_t i = 0; i < OPENING_MUTE_MAX; i++)
		if (same_root(&op->mute[i], root) && root->ino)
			return true;
	return false;
}

static void mute(struct opening *op, const struct root_id *root)
{
	if (!is_mute(op, root) && !same_root(root, &op->world->own_root))
		op->mute[op->n_mute++ % OPENING_MUTE_MAX] = *root;
}

static int own_root(void)
{
	return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The same, ours as long as we live: each mapping of a file without a generation asks for it. */
static int own_root_kept(struct opening *op)
{
	if (!op->own_root)
		op->own_root = own_root();
	return op->own_root;
}

/*
 * Is this open file the inode that was mapped? Its inode number already matches. While the file is
 * mapped no other file has its number. Afterwards a new file may get it: that has another
 * generation, or, where the file system has none (overlayfs, tmpfs), a later birth time.
 */
static bool is_inode(const struct mimage *img, int fd, const struct stat *st)
{
	uint64_t told = img->file.generation;
	uint32_t generation;
	int64_t born_ns;

	if (told & FILE_BORN)
		return !openin_born(fd, &born_ns) && told == ((uint64_t)born_ns | FILE_BORN);
	if (told && !(told & FILE_NOBODYS) && !openin_generation(fd, st, &generation))
		return generation == (uint32_t)told;
	return openin_born(fd, &born_ns) ||
	       born_ns <= (int64_t)img->since_ns + clock_boot_offset_ns();
}

/* Is it the file that was mapped? It has the number that the kernel told; the device may differ
 * (overlayfs, btrfs). */
static bool is_it(const struct mimage *img, int fd, const struct stat *st)
{
	return !img->file.ino || (st->st_ino == img->file.ino && is_inode(img, fd, st));
}

/* `fd` (taken), if it is the image's file; else -ESTALE, or the error that it is. */
static int if_it_is(const struct mimage *img, int fd, const struct stat *st)
{
	if (fd < 0 || is_it(img, fd, st))
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_by_root(const struct mimage *img, int root_fd, struct stat *st)
{
	return if_it_is(img, openin(root_fd, img->path, OPENIN_MAX_BYTES, st), st);
}

/* Does a link of /proc lead to a file of the image's name? */
static bool link_bears_name(const struct mimage *img, const char *link)
{
	static const char gone[] = " (deleted)";
	const char *name = strrchr(img->path, '/');
	size_t n = strlen(name ? name : img->path), len = strlen(link);

	if (len >= sizeof(gone) && !strcmp(link + len - (sizeof(gone) - 1), gone))
		len -= sizeof(gone) - 1;
	return len >= n && !memcmp(link + len - n, name ? name : img->path, n);
}

/* The mapping at these addresses may be another one by now (exec): its link must at least bear the
 * name. */
static bool bears_name(const struct mimage *img, const struct proc *p, uint64_t start, uint64_t end)
{
	char file[64], link[LINK_MAX_BYTES];

	snprintf(file, sizeof(file), "map_files/%llx-%llx", (unsigned long long)start,
		 (unsigned long long)end);
	return !proc_readlink(p->tgid, file, link, sizeof(link)) && link_bears_name(img, link);
}

/* Does the process map the image there now, in the kernel's own numbers? */
static bool is_mapped(const struct mimage *img, const struct proc *p, uint64_t start)
{
	cleanup_free char *text = NULL;
	size_t len = 0, pos = 0;
	struct proc_map m;

	if (proc_read(p->tgid, "maps", PROC_FILE_MAX, &text, &len))
		return false;
	while (proc_next_map(text, len, &pos, &m))
		if (m.start <= start && start < m.end)
			return m.inode == img->file.ino && m.major == img->file.major &&
			       m.minor == img->file.minor;
	return false;
}

/* The mapped file itself, even if stat(2) shows another inode number (overlayfs does). */
static int open_by_map(const struct mimage *img, const struct proc *p, uint64_t start, uint64_t end,
		       struct stat *st)
{
	int fd = bears_name(img, p, start, end) ?
			 openin_map_file(p->tgid, start, end, OPENIN_MAX_BYTES, st) :
			 -ENOENT;

	if (fd < 0 || (st->st_ino != img->file.ino && is_mapped(img, p, start)))
		return fd;
	return if_it_is(img, fd, st);
}

/* The executable that was held, if it is the image. */
static int open_held_exe(const struct mimage *img, int exe_fd, struct stat *st)
{
	char file[32], link[LINK_MAX_BYTES];

	snprintf(file, sizeof(file), "fd/%d", exe_fd);
	if (exe_fd < 0 || proc_readlink((uint32_t)getpid(), file, link, sizeof(link)) ||
	    !link_bears_name(img, link))
		return -ENOENT;
	return if_it_is(img, openin_held(exe_fd, OPENIN_MAX_BYTES, st), st);
}

/* What was held of the process: the path below its root, else its executable. *root_fd as below. */
static int open_by_early(const struct opening *op, const struct mimage *img, const struct proc *p,
			 struct stat *st, int *root_fd)
{
	cleanup_fd int root = -1;
	cleanup_fd int exe = -1;
	int fd = -ENOENT;

	if (!exec_race_get(op->early, p->tgid, p->start_ns, &img->file.root, &root, &exe))
		return fd;
	if (root >= 0 && img->path[0] == '/')
		fd = open_by_root(img, root, st);
	if (fd < 0 && fd != -ETIMEDOUT)
		fd = open_held_exe(img, exe, st);
	if (fd >= 0 && *root_fd < 0)
		*root_fd = take_fd(&root);
	return fd;
}

static int open_by_proc(struct opening *op, const struct mimage *img, const struct proc *p,
			uint64_t start, uint64_t end, struct stat *st, int *root_fd)
{
	int root = is_mute(op, &img->file.root) ? -ETIMEDOUT : openin_root(p->tgid), fd = -ENOENT;

	if (root == -ETIMEDOUT)
		return root;
	if (root >= 0 && img->path[0] == '/')
		fd = open_by_root(img, root, st);
	if (fd < 0 && fd != -ETIMEDOUT && start < end) {
		int by_map = open_by_map(img, p, start, end, st);

		fd = by_map >= 0 ? by_map : fd;
	}
	if (fd >= 0 && *root_fd < 0)
		*root_fd = root;
	else if (root >= 0)
		close(root);
	return fd;
}

int opening_through(struct opening *op, const struct mimage *img, const struct proc *p,
		    uint64_t start, uint64_t end, struct stat *st, int *root_fd)
{
	int fd = open_by_proc(op, img, p, start, end, st, root_fd);

	if (fd < 0 && fd != -ETIMEDOUT) {
		int early = open_by_early(op, img, p, st, root_fd);

		fd = early >= 0 || early == -ETIMEDOUT ? early : fd;
	}
	if (fd == -ETIMEDOUT)
		mute(op, &img->file.root);
	return fd;
}

/* Through any live process that maps it, then any that sees the same root, then our own root if
 * that is it. */
int opening_anyhow(struct opening *op, struct mimage *img, struct stat *st, int *root_fd)
{
	int fd = -ENOENT, tries = 0;

	for (struct proc *p = op->world->procs; p && tries < TRIES_MAX; p = p->hh.next) {
		for (size_t i = 0; i < p->maps.n_now; i++) {
			const struct mapping *m = &p->maps.now[i];

			if (m->image != img)
				continue;
			fd = opening_through(op, img, p, m->start, m->end, st, root_fd);
			if (fd >= 0)
				return fd;
			tries++;
			break;
		}
	}
	if (fd == -ENOTSUP || fd == -EFBIG || fd == -ETIMEDOUT)
		return fd;
	for (struct proc *p = op->world->procs; p && tries < 2 * TRIES_MAX; p = p->hh.next) {
		int rc;

		if (p->kthread || !same_root(&p->root, &img->file.root))
			continue;
		rc = opening_through(op, img, p, 0, 0, st, root_fd);
		if (rc >= 0)
			return rc;
		fd = rc == -EACCES || rc == -ESRCH ? fd : rc;
		if (fd == -ETIMEDOUT)
			return fd;
		tries++;
	}
	if (same_root(&op->world->own_root, &img->file.root) && img->path[0] == '/') {
		cleanup_fd int root = own_root();
		int rc = open_by_root(img, root, st);

		if (rc >= 0 && *root_fd < 0)
			*root_fd = take_fd(&root);
		return rc;
	}
	return fd;
}

static uint64_t born_at(int64_t born_ns, uint64_t time_ns)
{
	return born_ns > (int64_t)time_ns + clock_boot_offset_ns() ? 0 :
								     (uint64_t)born_ns | FILE_BORN;
}

static uint64_t born_below(int root_fd, const char *path, uint64_t ino, uint64_t time_ns)
{
	int64_t born_ns;

	if (root_fd < 0 || openin_cached_born(root_fd, path, ino, &born_ns))
		return 0;
	return born_at(born_ns, time_ns);
}

static void unpin(struct opening_known *k)
{
	if (k->pin)
		close(k->pin);
	k->pin = 0;
}

void opening_tick(struct opening *op, uint64_t now_ns)
{
	for (size_t i = 0; i < OPENING_BORN_MAX; i++)
		if (op->known[i].pin && now_ns > op->known[i].pinned_ns + OPENING_PIN_NS)
			unpin(&op->known[i]);
}

void opening_release(struct opening *op)
{
	for (size_t i = 0; i < OPENING_BORN_MAX; i++)
		unpin(&op->known[i]);
	if (op->own_root > 0)
		close(op->own_root);
}

static bool is_known(const struct opening *op, const struct opening_known *k)
{
	return k->reading && (k->pin || k->reading == op->world->readings);
}

/* Where the file is known, or would be. */
static struct opening_known *known_at(struct opening *op, const struct proc *p, const char *path,
				      const struct file_id *f)
{
	uint64_t hash = hash_str(HASH_SEED, path);
	struct opening_known *k = &op->known[hash_u64(hash, f->ino) & (OPENING_BORN_MAX - 1)];

	if (!is_known(op, k) || k->ino != f->ino || k->path != hash || k->major != f->major ||
	    k->minor != f->minor || !same_root(&k->root, &p->root)) {
		unpin(k);
		*k = (struct opening_known){.root = p->root,
					    .ino = f->ino,
					    .path = hash,
					    .major = f->major,
					    .minor = f->minor};
	}
	return k;
}

/* Looks at the file, and pins it if it is on our root file system. */
static void known_look(struct opening *op, struct opening_known *k, int root_fd, bool ours,
		       const char *path)
{
	int pin = -1;

	if (root_fd < 0 || (ours ? openin_cached_pin(root_fd, path, k->ino, &k->born_ns, &pin) :
				   openin_cached_born(root_fd, path, k->ino, &k->born_ns)))
		return;
	k->reading = op->world->readings;
	k->pin = pin > 0 ? pin : 0;
	k->pinned_ns = (uint64_t)clock_boot_ns();
}

/* Any live process that sees the same root. */
static uint64_t born_anyhow(struct opening *op, const struct proc *of, const char *path,
			    uint64_t ino, uint64_t time_ns)
{
	uint64_t born = 0;
	int tries = 0;

	for (struct proc *p = op->world->procs; p && !born && tries < TRIES_MAX; p = p->hh.next) {
		if (p == of || p->kthread || !same_root(&p->root, &of->root))
			continue;
		cleanup_fd int root = openin_root(p->tgid);

		born = born_below(root, path, ino, time_ns);
		tries++;
	}
	return born;
}

static uint64_t born_or_nobodys(uint64_t born, const struct proc *p)
{
	return born ? born :
		      FILE_NOBODYS | (p->start_ns >> 10 << 10) % FILE_NOBODYS |
			       (p->exec_id & 0x3ff);
}

uint64_t opening_born(struct opening *op, const struct proc *p, const char *path,
		      const struct file_id *f, uint64_t time_ns)
{
	/* a process that shares our root need not be asked for it, which is dearer than all the
	 * rest */
	bool ours = same_root(&p->root, &op->world->own_root);
	struct opening_known *known = known_at(op, p, path, f);
	cleanup_fd int theirs = -1, held = -1, exe = -1;
	uint64_t born;
	int root;

	if (known->reading)
		return born_or_nobodys(born_at(known->born_ns, time_ns), p);
	theirs = ours ? -1 : openin_root(p->tgid);
	root = ours ? own_root_kept(op) : theirs;
	known_look(op, known, root, ours, path);
	born = known->reading ? born_at(known->born_ns, time_ns) : 0;
	if (!born && exec_race_get(op->early, p->tgid, p->start_ns, &p->root, &held, &exe))
		born = born_below(held, path, f->ino, time_ns);
	if (!born && root < 0)
		born = born_anyhow(op, p, path, f->ino, time_ns);
	return born_or_nobodys(born, p);
}

/* A copy of our vDSO in a file; it is the same in every process. */
int opening_vdso(const struct world *w)
{
	cleanup_fd int fd = memfd_create("vdso", MFD_CLOEXEC);
	const void *base = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (fd < 0 || !base || write(fd, base, w->vdso_len) != (ssize_t)w->vdso_len)
		return -ENOENT;
	return take_fd(&fd);
}
