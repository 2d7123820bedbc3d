// SPDX-License-Identifier: Apache-2.0
/* indexer: see the header. */
#include "loaders/maps/indexer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/cache.h"
#include "loaders/lib/host/indexchild.h"
#include "loaders/lib/host/openin.h"
#include "loaders/lib/host/proc.h"
#include "loaders/maps/hub.h"
#include "loaders/maps/linejobs.h"
#include "loaders/maps/opening.h"
#include "loaders/maps/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

#define SMALL_BYTES (4u << 20)
#define MEMORY_MAX (64ull << 20) /* indexes that could not be stored */

struct job {
	struct indexchild child;
	struct mimage *image; /* NULL: it was dropped meanwhile */
	uint64_t deadline_ns;
};

struct indexer {
	struct world *world;
	struct hub *hub;
	struct cache *cache;
	int epoll_fd;
	char *program;
	struct job jobs[INDEXER_CHILDREN];
	struct mimage *queue, **queue_tail;
	struct mimage *ahead, **ahead_tail; /* nobody asked for these yet */
	size_t kept_fds;
	uint64_t memory_bytes;
	struct opening opening;
	struct linejobs *lines; /* NULL: lines are not wanted */
	uint64_t looked_ns; /* for descriptors kept too long */
};

static void start_next(struct indexer *ix);
static void drop_memory(struct indexer *ix, struct mimage *img);
static void lines_made(void *ctx, struct mimage *img, const char *key, int fd, const struct stat *st);

struct indexer *indexer_new(struct world *w, struct hub *h, struct cache *c, struct early *early, int epoll_fd,
			    const char *program, bool lines)
{
	struct indexer *ix = mem_alloc(sizeof(*ix));

	ix->world = ix->opening.world = w;
	ix->opening.early = early;
	ix->hub = h;
	ix->cache = c;
	ix->epoll_fd = epoll_fd;
	ix->program = mem_strdup(program);
	ix->queue_tail = &ix->queue;
	ix->ahead_tail = &ix->ahead;
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		indexchild_init(&ix->jobs[i].child);
	if (lines)
		ix->lines = linejobs_new(epoll_fd, program, &ix->opening, lines_made, ix);
	return ix;
}

/* ---- files ---- */

static void drop_fds(struct indexer *ix, struct mimage *img)
{
	if (img->fd >= 0) {
		close(img->fd);
		ix->kept_fds--;
	}
	if (img->root_fd >= 0)
		close(img->root_fd);
	img->fd = img->root_fd = -1;
}

static bool matches_build_id(const struct mimage *img, const char *key)
{
	char hex[64] = "";

	for (uint32_t i = 0; i < img->file.build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", img->file.build_id[i]);
	return !*hex || (!strncmp(key, hex, strlen(hex)) && key[strlen(hex)] == '-');
}

static void set_refused(struct mimage *img, const char *reason)
{
	free(img->reason);
	img->reason = mem_strdup(reason);
	img->state = IMAGE_REFUSED;
}

/* Has a debug package been installed since the index was made? As sonde-index's questions are answered: below the file's
 * root, then below ours. */
static bool is_outdated(struct indexer *ix, const struct mimage *img, const struct stat *st, int root_fd, const char *key)
{
	const struct root_id *root = &img->file.root, *own = &ix->world->own_root;
	char path[256];
	struct stat debug;

	if (!cache_debug_path(key, path, sizeof(path)))
		return false;
	if (!stat(path, &debug) && cache_is_older(ix->cache, st, &debug))
		return true;
	if (root_fd >= 0 && (root->ino != own->ino || root->dev != own->dev || root->mntns != own->mntns)) {
		cleanup_fd int fd = openin(root_fd, path, OPENIN_MAX_BYTES, &debug);

		return fd >= 0 && cache_is_older(ix->cache, st, &debug);
	}
	return false;
}

/* What the cache says of an open file. True: the image's state is settled. */
static bool settle_from_cache(struct indexer *ix, struct mimage *img, const struct stat *st, int root_fd)
{
	char *text = NULL;

	switch (cache_find(ix->cache, st, &text)) {
	case CACHE_KNOWN:
		if (!matches_build_id(img, text)) {
			free(text);
			if (img->path_failed) {
				set_refused(img, openin_reason(-ESTALE));
				return true;
			}
			img->path_failed = true;
			return false; /* its index will not be used: job_open tries the mapping itself */
		}
		if (is_outdated(ix, img, st, root_fd, text)) {
			free(text);
			return false;
		}
		free(img->key);
		img->key = text;
		img->state = IMAGE_READY;
		return true;
	case CACHE_REFUSED:
		set_refused(img, text);
		free(text);
		return true;
	default:
		return false;
	}
}

void indexer_see(struct indexer *ix, struct mimage *img, struct proc *p, uint64_t start, uint64_t end)
{
	struct stat st;
	int fd;

	if (img->kind != MP_IMAGE_ELF || ix->kept_fds >= INDEXER_FDS_MAX)
		return;
	fd = opening_through(&ix->opening, img, p, start, end, &st, &img->root_fd);
	if (fd < 0)
		fd = opening_anyhow(&ix->opening, img, &st, &img->root_fd);
	if (fd < 0) {
		ix->world->stats.open_failed++;
		return; /* tried again when it is wanted */
	}
	ix->world->stats.opened++;
	img->file_bytes = (uint64_t)st.st_size;
	if (settle_from_cache(ix, img, &st, img->root_fd) || img->path_failed) {
		close(fd);
		if (img->root_fd >= 0)
			close(img->root_fd);
		img->root_fd = -1;
		return;
	}
	img->fd = fd;
	img->fd_since_ns = (uint64_t)clock_boot_ns();
	ix->kept_fds++;
}

/* ---- telling ---- */

int indexer_open(struct indexer *ix, struct mimage *img)
{
	int fd = img->index_fd >= 0 ? fcntl(img->index_fd, F_DUPFD_CLOEXEC, 3) : cache_get(ix->cache, img->key);

	if (fd < 0)
		img->state = IMAGE_PENDING;
	return fd;
}

void indexer_tell(struct indexer *ix, struct mimage *img)
{
	struct mp_index m = {.id = img->id, .state = img->state};
	cleanup_fd int fd = -1;

	if (img->state == IMAGE_PENDING || !img->wanted)
		return;
	if (img->state == IMAGE_READY) {
		fd = indexer_open(ix, img);
		if (fd < 0) { /* make it again */
			img->wanted = false;
			indexer_want(ix, img, false);
			return;
		}
	}
	if (fd >= 0 && ix->lines && image_lines_later(fd))
		linejobs_add(ix->lines, img);
	hub_emit_index(ix->hub, &m, img->key ? img->key : "", img->reason ? img->reason : "", fd);
}

static void refuse(struct indexer *ix, struct mimage *img, const char *reason)
{
	set_refused(img, reason);
	drop_fds(ix, img);
	indexer_tell(ix, img);
}

static void enqueue(struct mimage ***tail, struct mimage *img)
{
	img->next_wanted = NULL;
	**tail = img;
	*tail = &img->next_wanted;
}

static void dequeue(struct mimage **head, struct mimage ***tail, const struct mimage *img)
{
	struct mimage **p = head;

	while (*p && *p != img)
		p = &(*p)->next_wanted;
	if (!*p)
		return;
	*p = img->next_wanted;
	if (*tail == &img->next_wanted)
		*tail = p;
}

static bool is_running(const struct indexer *ix, const struct mimage *img)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid && ix->jobs[i].image == img)
			return true;
	return false;
}

/* What somebody waits for is not left to the idle time of a busy host; a small file is a matter of milliseconds. */
static void hurry(const struct indexer *ix, const struct mimage *img)
{
	int nice = img->file_bytes && img->file_bytes <= SMALL_BYTES ? getpriority(PRIO_PROCESS, 0) : 0;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid && ix->jobs[i].image == img)
			setpriority(PRIO_PROCESS, (id_t)ix->jobs[i].child.pid, nice);
}

void indexer_want(struct indexer *ix, struct mimage *img, bool damaged)
{
	if (damaged && img->state == IMAGE_READY) {
		if (img->redone) {
			cache_remove(ix->cache, img->key);
			refuse(ix, img, "its index cannot be read");
			return;
		}
		img->redone = true;
		cache_remove(ix->cache, img->key);
		img->state = IMAGE_PENDING;
		img->wanted = false;
	}
	if (img->state != IMAGE_PENDING) {
		img->wanted = true;
		indexer_tell(ix, img);
		return;
	}
	if (img->wanted)
		return;
	img->wanted = true;
	if (is_running(ix, img)) { /* told at its end */
		hurry(ix, img);
		return;
	}
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	enqueue(&ix->queue_tail, img);
	start_next(ix);
}

void indexer_ahead(struct indexer *ix, struct mimage *img)
{
	if (img->state != IMAGE_PENDING || img->wanted || is_running(ix, img))
		return;
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	enqueue(&ix->ahead_tail, img);
	start_next(ix);
}

void indexer_drop(struct indexer *ix, struct mimage *img)
{
	dequeue(&ix->queue, &ix->queue_tail, img);
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].image == img)
			ix->jobs[i].image = NULL;
	if (ix->lines)
		linejobs_drop(ix->lines, img);
	drop_fds(ix, img);
	drop_memory(ix, img);
}

/* ---- the child ---- */

static int job_start(struct indexer *ix, struct job *j)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = j};
	int rc = indexchild_start(&j->child, ix->program, ix->lines ? NULL : "--no-lines", 10);

	if (rc)
		return rc;
	j->deadline_ns = (uint64_t)clock_boot_ns() + INDEXER_DEADLINE_NS;
	epoll_ctl(ix->epoll_fd, EPOLL_CTL_ADD, j->child.sock, &ev);
	return 0;
}

static void job_clear(struct job *j)
{
	indexchild_clear(&j->child);
	j->image = NULL;
	j->deadline_ns = 0;
}

/* The image's file, ready to be given to a child; or the image is settled at once, and false comes back. */
static bool job_open(struct indexer *ix, struct job *j, struct mimage *img)
{
	int fd = img->fd >= 0 ? take_fd(&img->fd) : -1;

	job_clear(j);
	j->child.root_fd = take_fd(&img->root_fd);
	if (fd >= 0) {
		ix->kept_fds--;
		j->child.have_st = !fstat(fd, &j->child.st);
	} else if (img->kind == MP_IMAGE_VDSO) {
		fd = opening_vdso(ix->world);
	} else {
		fd = opening_anyhow(&ix->opening, img, &j->child.st, &j->child.root_fd);
		j->child.have_st = fd >= 0;
		ix->world->stats.opened += fd >= 0;
		ix->world->stats.open_failed += fd < 0;
	}
	if (fd < 0) {
		refuse(ix, img, openin_reason(fd));
		return false;
	}
	j->child.elf = fd;
	if (j->child.have_st) {
		bool failed = img->path_failed;
		bool settled = settle_from_cache(ix, img, &j->child.st, j->child.root_fd);

		if (!settled && img->path_failed != failed) /* the path leads to another file */
			return job_open(ix, j, img);
		if (settled) {
			indexer_tell(ix, img);
			return false;
		}
	}
	j->image = img;
	j->child.path = mem_strdup(img->path);
	return true;
}

/* One is kept for what somebody asks for. */
static struct job *job_free_slot(struct indexer *ix, bool wanted)
{
	struct job *free_one = NULL;
	int n = 0;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (!ix->jobs[i].child.pid) {
			free_one = &ix->jobs[i];
			n++;
		}
	return n > !wanted ? free_one : NULL;
}

/* The smallest file first: it is ready in milliseconds, and those that wait for a large one wait for seconds anyhow. */
static struct mimage *smallest(struct mimage *queue)
{
	struct mimage *best = queue;

	for (struct mimage *img = queue; img; img = img->next_wanted)
		if (img->file_bytes < best->file_bytes)
			best = img;
	return best;
}

static void start_next(struct indexer *ix)
{
	struct job *j;

	while ((ix->queue || ix->ahead) && (j = job_free_slot(ix, ix->queue))) {
		struct mimage *img = ix->queue ? smallest(ix->queue) : ix->ahead;
		int rc;

		if (ix->queue)
			dequeue(&ix->queue, &ix->queue_tail, img);
		else
			dequeue(&ix->ahead, &ix->ahead_tail, img);
		if (!job_open(ix, j, img)) {
			job_clear(j);
			continue;
		}
		rc = job_start(ix, j);
		if (rc) {
			char reason[128];

			snprintf(reason, sizeof(reason), "cannot start sonde-index: %s", strerror(-rc));
			refuse(ix, img, reason);
			job_clear(j);
		} else if (img->wanted) {
			hurry(ix, img);
		}
	}
}

/* ---- the end of a child ---- */

/* The file at the path is a newer one: once more, through the mapping itself. */
static void not_it(struct indexer *ix, struct mimage *img)
{
	bool wanted = img->wanted;

	if (img->path_failed) {
		refuse(ix, img, openin_reason(-ESTALE));
		return;
	}
	img->path_failed = true;
	drop_fds(ix, img);
	img->wanted = false;
	if (wanted)
		indexer_want(ix, img, false);
	else
		indexer_ahead(ix, img);
}

static void drop_memory(struct indexer *ix, struct mimage *img)
{
	if (img->index_fd < 0)
		return;
	ix->memory_bytes -= img->index_bytes;
	close(img->index_fd);
	img->index_fd = -1;
}

/* `fd` is taken. false: there is no room, and what was kept before stays. */
static bool keep_in_memory(struct indexer *ix, struct mimage *img, int fd)
{
	const uint64_t others = ix->memory_bytes - (img->index_fd >= 0 ? img->index_bytes : 0);
	off_t bytes = lseek(fd, 0, SEEK_END);

	if (bytes < 0 || others + (uint64_t)bytes > MEMORY_MAX) {
		close(fd);
		return false;
	}
	drop_memory(ix, img);
	img->index_bytes = (uint64_t)bytes;
	ix->memory_bytes += img->index_bytes;
	img->index_fd = fd;
	return true;
}

/* Keeps an index (`fd` is taken) and takes it for the image's, if its build-id fits. -ENOSPC: there is no room for it,
 * -ESTALE: it is another file's. */
static int adopt(struct indexer *ix, struct mimage *img, const char *key, int fd, const struct stat *st)
{
	cleanup_fd int own = fd;
	char *stored = NULL;

	if (cache_put(ix->cache, key, own, st, &stored)) {
		/* no folder, or a full disk: kept in memory, as much as there may be */
		if (!keep_in_memory(ix, img, take_fd(&own)))
			return -ENOSPC;
		stored = mem_strdup(key);
	} else {
		drop_memory(ix, img);
	}
	if (!matches_build_id(img, key)) {
		free(stored);
		return -ESTALE;
	}
	free(img->key);
	img->key = stored;
	img->state = IMAGE_READY;
	return 0;
}

static void job_success(struct indexer *ix, struct job *j)
{
	struct mimage *img = j->image;
	int copy = -1, rc;

	j->image = NULL; /* it may be queued again */
	if (!cache_key_ok(j->child.text) || indexchild_take(&j->child, &copy)) {
		refuse(ix, img, "sonde-index wrote an index that cannot be read");
		return;
	}
	rc = adopt(ix, img, j->child.text, copy, j->child.have_st ? &j->child.st : NULL);
	if (rc == -ENOSPC)
		refuse(ix, img, "its index cannot be stored, and too many are kept in memory");
	else if (rc)
		not_it(ix, img);
	if (rc)
		return;
	drop_fds(ix, img);
	indexer_tell(ix, img);
}

/* The same file's index, now with lines: it takes the place of the one that was told. */
static void lines_made(void *ctx, struct mimage *img, const char *key, int fd, const struct stat *st)
{
	struct indexer *ix = ctx;

	if (img->state != IMAGE_READY || !cache_key_ok(key) || !matches_build_id(img, key))
		close(fd);
	else if (!adopt(ix, img, key, fd, st))
		indexer_tell(ix, img);
}

static void job_refused(struct indexer *ix, struct job *j, const char *reason)
{
	if (j->child.have_st)
		cache_refuse(ix->cache, &j->child.st, reason);
	if (j->image)
		refuse(ix, j->image, reason);
}

static void job_end(struct indexer *ix, struct job *j, bool late)
{
	char reason[320];
	enum indexchild_end how;

	epoll_ctl(ix->epoll_fd, EPOLL_CTL_DEL, j->child.sock, NULL);
	how = indexchild_end(&j->child, late, reason, sizeof(reason));
	if (how == INDEXCHILD_REFUSED)
		job_refused(ix, j, reason);
	else if (j->image && how == INDEXCHILD_MADE)
		job_success(ix, j);
	else if (j->image)
		refuse(ix, j->image, reason); /* it may work the next time */
	job_clear(j);
	start_next(ix);
}

bool indexer_ready(struct indexer *ix, void *ptr)
{
	if (ix->lines && linejobs_ready(ix->lines, ptr))
		return true;
	for (int i = 0; i < INDEXER_CHILDREN; i++) {
		struct job *j = &ix->jobs[i];

		if (ptr != j)
			continue;
		if (j->child.pid && indexchild_hear(&j->child))
			job_end(ix, j, false);
		return true;
	}
	return false;
}

void indexer_tick(struct indexer *ix, uint64_t now_ns)
{
	early_tick(ix->opening.early, now_ns);
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid && now_ns > ix->jobs[i].deadline_ns)
			job_end(ix, &ix->jobs[i], true);
	if (ix->lines) {
		linejobs_tick(ix->lines, now_ns);
		if (!indexer_busy(ix))
			linejobs_next(ix->lines);
	}
	if (!ix->kept_fds || now_ns < ix->looked_ns + NSEC_PER_SEC)
		return;
	ix->looked_ns = now_ns;
	for (struct mimage *img = ix->world->by_id; img; img = img->hh_id.next)
		if (img->fd >= 0 && !img->wanted && now_ns - img->fd_since_ns > INDEXER_KEEP_NS)
			drop_fds(ix, img);
}

bool indexer_busy(const struct indexer *ix)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid)
			return true;
	return ix->queue || ix->ahead;
}

void indexer_free(struct indexer *ix)
{
	if (!ix)
		return;
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid) {
			kill(ix->jobs[i].child.pid, SIGKILL);
			waitpid(ix->jobs[i].child.pid, NULL, 0);
			job_clear(&ix->jobs[i]);
		}
	linejobs_free(ix->lines);
	free(ix->program);
	free(ix);
}
