/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/indexing/indexer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/budget/cpushare.h"
#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/host/maps/indexchild.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/indexing/linejobs.h"
#include "loaders/maps/indexing/opening.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

struct job {
	struct indexchild child;
	struct mimage *image; /* NULL: the world dropped it meanwhile */
	uint64_t deadline_ns;
	uint64_t starved_ns; /* how much of the deadline's extension the child spent waiting for a
				CPU */
	bool paced; /* its CPU time counts against the share; false: it makes the rows of a file
		       that has samples */
};

#define JOBS (INDEXER_CHILDREN + INDEXER_QUICK)

struct indexer {
	struct world *world;
	struct hub *hub;
	struct cache *cache;
	int epoll_fd;
	char *program;
	struct job jobs[JOBS];
	struct mimage *queue, **queue_tail;
	struct mimage *ahead, **ahead_tail; /* not requested yet */
	struct mimage *again, **again_tail; /* retried at again_ns */
	struct mimage *rest, **rest_tail;   /* have rows; symbols not requested yet */
	struct cpushare share;
	size_t kept_fds;
	uint64_t memory_bytes;
	struct opening opening;
	struct linejobs *lines; /* NULL: lines are not wanted */
	uint64_t looked_ns;     /* when it last searched for descriptors to close */
};

static void drop_memory(struct indexer *ix, struct mimage *img);
static void refuse(struct indexer *ix, struct mimage *img, const char *reason);
static void enqueue(struct mimage ***tail, struct mimage *img);
static void dequeue(struct mimage **head, struct mimage ***tail, const struct mimage *img);

#define MEMORY_MAX (64ull << 20) /* indexes that could not be stored on disk */

/* Close what was opened early. */
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

static void set_refused(struct mimage *img, const char *reason)
{
	free(img->reason);
	img->reason = mem_strdup(reason);
	img->state = IMAGE_REFUSED;
	img->rows_only = false;
}

/* Has a debug package been installed since the index was made? Looks in the places where the
 * indexer finds debug files for sonde-index: below the file's root, then below ours. */
static bool is_outdated(struct indexer *ix, const struct mimage *img, const struct stat *st,
			int root_fd, const char *key)
{
	const struct root_id *root = &img->file.root, *own = &ix->world->own_root;
	char path[256];
	struct stat debug;

	if (!cache_debug_path(key, path, sizeof(path)))
		return false;
	if (!stat(path, &debug) && cache_is_older(ix->cache, st, &debug))
		return true;
	if (root_fd >= 0 &&
	    (root->ino != own->ino || root->dev != own->dev || root->mntns != own->mntns)) {
		cleanup_fd int fd = openin(root_fd, path, OPENIN_MAX_BYTES, &debug);

		return fd >= 0 && cache_is_older(ix->cache, st, &debug);
	}
	return false;
}

/* Look the open file up in the cache. True: the image's state is settled. */
static bool settle(struct indexer *ix, struct mimage *img, const struct stat *st, int root_fd)
{
	char *text = NULL;

	switch (cache_find(ix->cache, st, &text)) {
	case CACHE_KNOWN:
		if (is_outdated(ix, img, st, root_fd, text)) {
			free(text);
			return false;
		}
		drop_memory(ix, img); /* it had rows only until now */
		free(img->key);
		img->key = text;
		img->state = IMAGE_READY;
		img->rows_only = false;
		return true;
	case CACHE_REFUSED:
		set_refused(img, text);
		free(text);
		return true;
	default:
		return false;
	}
}

void indexer_see(struct indexer *ix, struct mimage *img, struct proc *p, uint64_t start,
		 uint64_t end)
{
	struct stat st;
	int fd;

	if (img->kind != MP_IMAGE_ELF)
		return;
	fd = opening_through(&ix->opening, img, p, start, end, &st, &img->root_fd);
	if (fd < 0)
		fd = opening_anyhow(&ix->opening, img, &st, &img->root_fd);
	if (fd < 0) {
		ix->world->stats.open_failed++;
		return; /* the indexer tries again when the image is wanted */
	}
	ix->world->stats.opened++;
	img->file_bytes = (uint64_t)st.st_size;
	img->file_id = cache_file_id(&st);
	if (settle(ix, img, &st, img->root_fd) || ix->kept_fds >= INDEXER_FDS_MAX) {
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

uint64_t indexer_born(struct indexer *ix, const struct proc *p, const char *path,
		      const struct file_id *f, uint64_t time_ns)
{
	return opening_born(&ix->opening, p, path, f, time_ns);
}

/* ---- indexes ---- */

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

/* Keep rows without symbols in memory (`fd` is taken) as the image's index. false: there is no
 * room. */
static bool adopt_rows(struct indexer *ix, struct mimage *img, const char *key, int fd)
{
	if (!keep_in_memory(ix, img, fd))
		return false;
	free(img->key);
	img->key = mem_strdup(key);
	img->state = IMAGE_READY;
	img->rows_only = true;
	return true;
}

/* Keep an index (`fd` is taken) as the image's. -ENOSPC: there is no room for it. */
static int adopt(struct indexer *ix, struct mimage *img, const char *key, int fd,
		 const struct stat *st)
{
	cleanup_fd int own = fd;
	char *stored = NULL;

	if (cache_put(ix->cache, key, own, st, &stored)) {
		/* no folder, or a full disk: keep it in memory, within MEMORY_MAX */
		if (!keep_in_memory(ix, img, take_fd(&own)))
			return -ENOSPC;
		stored = mem_strdup(key);
	} else {
		drop_memory(ix, img);
	}
	free(img->key);
	img->key = stored;
	img->state = IMAGE_READY;
	img->rows_only = false;
	return 0;
}

#define SMALL_BYTES (4u << 20)
#define START_BYTES (16u << 20) /* starting a child costs about as much as reading this */

static int job_start(struct indexer *ix, struct job *j)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = j};
	/* need not be made first if they exist */
	const char *option = !j->image->rows_only          ? "--rows-first" :
			     ix->lines && j->image->wanted ? NULL :
							     "--no-lines";
	int rc = indexchild_start(&j->child, ix->program, option, 10);

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
	j->starved_ns = 0;
	j->paced = false;
}

/* Keep the child's descriptors for the next child. */
static void keep_open(struct indexer *ix, struct job *j, struct mimage *img)
{
	if (img->kind != MP_IMAGE_ELF || j->child.elf < 0)
		return;
	img->fd = take_fd(&j->child.elf);
	img->root_fd = take_fd(&j->child.root_fd);
	img->fd_since_ns = (uint64_t)clock_boot_ns();
	ix->kept_fds++;
}

/* Open the image's file for a child. false: the image is settled without one. */
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
	if (j->child.have_st && settle(ix, img, &j->child.st, j->child.root_fd)) {
		indexer_tell(ix, img);
		return false;
	}
	j->image = img;
	j->child.path = mem_strdup(img->path);
	return true;
}

/* Is there room for another child within the share? */
static bool may_pace(const struct indexer *ix)
{
	int n = 0;

	for (int i = 0; i < JOBS; i++)
		n += ix->jobs[i].child.pid && ix->jobs[i].paced;
	return n < INDEXER_PACED && cpushare_open(&ix->share);
}

/* `quick`: a small file that is wanted at once. */
static struct job *job_free_slot(struct indexer *ix, bool paced, bool quick)
{
	const int n = quick ? JOBS : INDEXER_CHILDREN;

	for (int i = 0; i < n && (!paced || may_pace(ix)); i++)
		if (!ix->jobs[i].child.pid)
			return &ix->jobs[i];
	return NULL;
}

/* The share does not limit the rows of a file that has samples, nor symbols that a client waits
 * for. */
static bool is_paced(const struct mimage *img)
{
	return !img->wanted || (img->rows_only && !img->awaited);
}

static void job_pause(struct job *j, bool stop)
{
	j->deadline_ns += indexchild_pause(&j->child, stop);
}

static bool is_small(const struct mimage *img)
{
	return img->file_bytes <= SMALL_BYTES;
}

/* A client waits for it: do not leave it to the idle time of a busy host. Without rows its samples
 * have one frame; a small file takes milliseconds. */
static void hurry(struct indexer *ix, const struct mimage *img)
{
	int nice = !img->rows_only || is_small(img) ? getpriority(PRIO_PROCESS, 0) : 0;

	for (int i = 0; i < JOBS; i++) {
		struct job *j = &ix->jobs[i];

		if (!j->child.pid || j->image != img)
			continue;
		setpriority(PRIO_PROCESS, (id_t)j->child.pid, nice);
		j->paced = is_paced(img);
		if (!j->paced)
			job_pause(j, false);
	}
}

/* Uses served for each byte that must be read: what serves most soonest goes first, so that the sum
 * of all waiting is least. */
static double worth(const struct mimage *img)
{
	return (double)(img->uses + 1) / (double)(img->file_bytes + START_BYTES);
}

/* Rows come first. */
static bool comes_before(const struct mimage *a, const struct mimage *b)
{
	if (is_paced(a) != is_paced(b))
		return is_paced(b);
	return a->rows_only != b->rows_only ? !a->rows_only : worth(a) > worth(b);
}

/* `quick`: only small files that are wanted at once. NULL: no such file waits. */
static struct mimage *next_wanted(struct mimage *queue, bool quick)
{
	struct mimage *best = NULL;

	for (struct mimage *img = queue; img; img = img->next_wanted)
		if ((!quick || (is_small(img) && !is_paced(img))) &&
		    (!best || comes_before(img, best)))
			best = img;
	return best;
}

static void image_start(struct indexer *ix, struct job *j, struct mimage *img, bool paced)
{
	int rc;

	if (!job_open(ix, j, img)) {
		job_clear(j);
		return;
	}
	j->paced = paced;
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

/* Where large files have all their slots, small ones still have theirs. */
static void start_quick(struct indexer *ix)
{
	struct mimage *img;
	struct job *j;

	while ((img = next_wanted(ix->queue, true)) && (j = job_free_slot(ix, false, true))) {
		dequeue(&ix->queue, &ix->queue_tail, img);
		image_start(ix, j, img, false);
	}
}

/* Start as many children as there is room for. */
static void start_next(struct indexer *ix)
{
	while (ix->queue || ix->ahead) {
		struct mimage *img = ix->queue ? next_wanted(ix->queue, false) : ix->ahead;
		const bool paced = is_paced(img);
		struct job *j = job_free_slot(ix, paced, false);

		if (!j)
			break;
		if (ix->queue)
			dequeue(&ix->queue, &ix->queue_tail, img);
		else
			dequeue(&ix->ahead, &ix->ahead_tail, img);
		image_start(ix, j, img, paced);
	}
	start_quick(ix);
}

/* Make symbols that no client wants yet; only when there is nothing else to do. */
static void start_rest(struct indexer *ix)
{
	struct job *j =
		ix->rest && cpushare_is_full(&ix->share) ? job_free_slot(ix, true, false) : NULL;
	struct mimage *img = ix->rest;

	if (!j)
		return;
	dequeue(&ix->rest, &ix->rest_tail, img);
	image_start(ix, j, img, true);
}

/* ---- the share ---- */

/* Charge the share for the CPU time used since the last call. */
static void job_count(struct indexer *ix, struct job *j)
{
	uint64_t more = indexchild_cpu_more(&j->child);

	if (j->paced)
		cpushare_spend(&ix->share, (int64_t)more);
}

/* Children within the share run while it lasts; else they are stopped (SIGSTOP). */
static void jobs_pace(struct indexer *ix)
{
	for (int i = 0; i < JOBS; i++)
		job_count(ix, &ix->jobs[i]);
	for (int i = 0; i < JOBS; i++)
		if (ix->jobs[i].paced)
			job_pause(&ix->jobs[i], !cpushare_open(&ix->share));
}

/* ---- rows ---- */

static void job_cancel(struct indexer *ix, struct job *j)
{
	char reason[320];

	epoll_ctl(ix->epoll_fd, EPOLL_CTL_DEL, j->child.sock, NULL);
	indexchild_end(&j->child, true, reason, sizeof(reason));
	job_count(ix, j);
}

/* Make the symbols later: as soon as possible if a client wants them, else when there is nothing
 * else to do. Keep the open file for that. */
static void job_put_off(struct indexer *ix, struct job *j, struct mimage *img)
{
	job_cancel(ix, j);
	keep_open(ix, j, img);
	job_clear(j);
	if (img->wanted)
		enqueue(&ix->queue_tail, img);
	else
		enqueue(&ix->rest_tail, img);
	start_next(ix);
}

/* May the child go on to the symbols now? It has the file in memory already. */
static bool may_go_on(const struct indexer *ix, const struct job *j, const struct mimage *img)
{
	if (img->wanted)
		return img->awaited || j->paced || may_pace(ix);
	if (is_small(img)) /* its symbols take less than another child to make them later */
		return cpushare_open(&ix->share);
	return !ix->queue && !ix->ahead && cpushare_is_full(&ix->share);
}

/* true: the image has them, and the clients know. */
static bool rows_take(struct indexer *ix, const struct job *j, struct mimage *img)
{
	int copy = -1;

	if (img->state != IMAGE_PENDING || !cache_key_ok(j->child.text) ||
	    indexchild_take(&j->child, &copy) || !adopt_rows(ix, img, j->child.text, copy))
		return false;
	indexer_tell(ix, img);
	return true;
}

/* The child has made the rows: take them, then let it go on or end it. */
static void job_rows(struct indexer *ix, struct job *j)
{
	struct mimage *img = j->image;

	job_count(ix, j);
	if (!img) { /* it was dropped */
		job_cancel(ix, j);
		job_clear(j);
		start_next(ix);
		return;
	}
	if (rows_take(ix, j, img) && !may_go_on(ix, j, img)) {
		job_put_off(ix, j, img);
		return;
	}
	j->paced = !img->awaited;
	j->deadline_ns = (uint64_t)clock_boot_ns() + INDEXER_DEADLINE_NS;
	indexchild_go(&j->child, ix->lines && img->wanted);
}

/* ---- the end of a child ---- */

static void job_success(struct indexer *ix, struct job *j)
{
	struct mimage *img = j->image;
	int copy = -1;

	j->image = NULL; /* it may be queued again */
	if (!cache_key_ok(j->child.text) || indexchild_take(&j->child, &copy)) {
		refuse(ix, img, "sonde-index wrote an index that cannot be read");
		return;
	}
	if (adopt(ix, img, j->child.text, copy, j->child.have_st ? &j->child.st : NULL)) {
		refuse(ix, img, "its index cannot be stored, and too many are kept in memory");
		return;
	}
	drop_fds(ix, img);
	indexer_tell(ix, img);
}

/* For linejobs: an index of the same file, now with lines, replaces the previous one. */
static void lines_made(void *ctx, struct mimage *img, const char *key, int fd,
		       const struct stat *st)
{
	struct indexer *ix = ctx;

	if (img->state != IMAGE_READY || !cache_key_ok(key))
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

/* The failure is not the file's fault (the child was killed, the disk was full): do not remember
 * it, and try again, up to INDEXER_TRIES times. Keep the open file for that. */
static void job_failed(struct indexer *ix, struct job *j, const char *reason)
{
	static const uint64_t pause_ns[INDEXER_TRIES - 1] = {NSEC_PER_SEC, 10 * NSEC_PER_SEC};
	struct mimage *img = j->image;
	uint64_t now = (uint64_t)clock_boot_ns();

	if (img->index_failed == INDEXER_TRIES - 1) {
		refuse(ix, img, reason);
		return;
	}
	log_info("no index of %s yet: %s", img->path, reason);
	img->again_ns = now + pause_ns[img->index_failed++];
	keep_open(ix, j, img);
	enqueue(&ix->again_tail, img);
}

/* /proc/PID/schedstat: time on a CPU, time of waiting for one, both in ns. */
static uint64_t starved(pid_t pid)
{
	cleanup_free char *text = NULL;
	unsigned long long ran, waited;
	size_t len;

	if (proc_read((uint32_t)pid, "schedstat", 128, &text, &len) ||
	    sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return 0;
	return waited < INDEXER_STARVED_NS ? waited : INDEXER_STARVED_NS;
}

/* Is its time over? First extends the deadline by the time that the child waited for a CPU, which
 * is most of it on a busy host. */
static bool job_late(struct job *j, uint64_t now_ns)
{
	uint64_t waited;

	if (now_ns <= j->deadline_ns ||
	    indexchild_speaks(&j->child)) /* it may be waiting for our answer */
		return false;
	waited = starved(j->child.pid);
	if (waited <= j->starved_ns)
		return true;
	j->deadline_ns += waited - j->starved_ns;
	j->starved_ns = waited;
	return now_ns > j->deadline_ns;
}

static void job_end(struct indexer *ix, struct job *j, bool late)
{
	char reason[320];
	enum indexchild_end how;

	epoll_ctl(ix->epoll_fd, EPOLL_CTL_DEL, j->child.sock, NULL);
	how = indexchild_end(&j->child, late, reason, sizeof(reason));
	job_count(ix, j);
	if (how == INDEXCHILD_REFUSED)
		job_refused(ix, j, reason);
	else if (j->image && how == INDEXCHILD_MADE)
		job_success(ix, j);
	else if (j->image)
		job_failed(ix, j, reason);
	job_clear(j);
	start_next(ix);
}

struct indexer *indexer_new(struct world *w, struct hub *h, struct cache *c,
			    struct exec_race *early, int epoll_fd, const char *program, bool lines)
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
	ix->again_tail = &ix->again;
	ix->rest_tail = &ix->rest;
	cpushare_init(&ix->share, clock_boot_ns(), cpushare_idle_ns());
	for (int i = 0; i < JOBS; i++)
		indexchild_init(&ix->jobs[i].child);
	if (lines)
		ix->lines = linejobs_new(epoll_fd, program, &ix->opening, lines_made, ix);
	return ix;
}

/* ---- telling ---- */

/* Check a stored index once: its readers do not check it again (image_open_sound_fd). */
static bool is_sound(struct indexer *ix, int fd)
{
	struct image *index = NULL;

	if (cache_is_sound(ix->cache, fd))
		return true;
	if (image_open_fd(fd, &index, NULL))
		return false;
	image_close(index);
	cache_set_sound(ix->cache, fd);
	return true;
}

/* Make the index again, if a client wants it. */
static int gone(struct indexer *ix, struct mimage *img, int err)
{
	bool wanted = img->wanted;

	img->state = IMAGE_PENDING;
	img->wanted = img->rows_only = false;
	dequeue(&ix->rest, &ix->rest_tail, img);
	if (wanted)
		indexer_want(ix, img, false);
	return err;
}

static int damaged(struct indexer *ix, struct mimage *img)
{
	cache_remove(ix->cache, img->key);
	if (img->rotten) {
		refuse(ix, img, "its index cannot be read");
		return -EBADMSG;
	}
	img->rotten = true;
	return gone(ix, img, -EBADMSG);
}

static int get_fd(struct indexer *ix, struct mimage *img)
{
	int fd = img->index_fd < 0 ? cache_get(ix->cache, img->key) :
				     fcntl(img->index_fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? gone(ix, img, -ENOENT) : fd;
}

int indexer_open(struct indexer *ix, struct mimage *img)
{
	cleanup_fd int fd = get_fd(ix, img);

	if (fd >= 0 && img->index_fd < 0 && !is_sound(ix, fd))
		return damaged(ix, img);
	return take_fd(&fd);
}

int indexer_open_rows(struct indexer *ix, struct mimage *img, struct image **out)
{
	cleanup_fd int fd = get_fd(ix, img);

	if (fd < 0)
		return fd;
	return image_open_rows_fd(fd, out, NULL) ? damaged(ix, img) : 0;
}

void indexer_tell(struct indexer *ix, struct mimage *img)
{
	struct mp_index m = {.id = img->id, .state = img->state};
	cleanup_fd int fd = -1;

	if (img->state == IMAGE_PENDING || !img->wanted)
		return;
	if (img->rows_only)
		m.state = MP_INDEX_ROWS;
	if (img->state == IMAGE_READY) {
		fd = indexer_open(ix, img);
		if (fd < 0) /* it is being made again */
			return;
	}
	if (fd >= 0 && ix->lines && !img->rows_only && image_lines_later(fd))
		linejobs_add(ix->lines, img);
	hub_emit_index(ix->hub, &m, img->key ? img->key : "", img->reason ? img->reason : "", fd);
}

/* The image gets no index; tell the clients why. */
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
	for (int i = 0; i < JOBS; i++)
		if (ix->jobs[i].child.pid && ix->jobs[i].image == img)
			return true;
	return false;
}

void indexer_want(struct indexer *ix, struct mimage *img, bool damaged)
{
	if (damaged && img->state == IMAGE_READY && !img->rows_only) {
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
	if (img->state != IMAGE_PENDING && !img->rows_only) {
		img->wanted = true;
		indexer_tell(ix, img);
		return;
	}
	if (img->wanted) {
		if (img->awaited && is_running(ix, img))
			hurry(ix, img);
		start_next(ix);
		return;
	}
	img->wanted = true;
	indexer_tell(ix, img); /* the rows, if there are any */
	if (img->again_ns)
		return;
	if (is_running(ix, img)) { /* clients hear of it when the child ends */
		hurry(ix, img);
		return;
	}
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	dequeue(&ix->rest, &ix->rest_tail, img);
	enqueue(&ix->queue_tail, img);
	start_next(ix);
}

void indexer_ahead(struct indexer *ix, struct mimage *img)
{
	if (img->state != IMAGE_PENDING || img->wanted || img->again_ns || is_running(ix, img))
		return;
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	enqueue(&ix->ahead_tail, img);
	start_next(ix);
}

void indexer_drop(struct indexer *ix, struct mimage *img)
{
	dequeue(&ix->queue, &ix->queue_tail, img);
	dequeue(&ix->ahead, &ix->ahead_tail, img);
	dequeue(&ix->again, &ix->again_tail, img);
	dequeue(&ix->rest, &ix->rest_tail, img);
	for (int i = 0; i < JOBS; i++)
		if (ix->jobs[i].image == img)
			ix->jobs[i].image = NULL;
	if (ix->lines)
		linejobs_drop(ix->lines, img);
	drop_fds(ix, img);
	drop_memory(ix, img);
}

bool indexer_ready(struct indexer *ix, void *ptr)
{
	if (ix->lines && linejobs_ready(ix->lines, ptr))
		return true;
	for (int i = 0; i < JOBS; i++) {
		struct job *j = &ix->jobs[i];

		if (ptr != j)
			continue;
		if (j->child.pid && indexchild_hear(&j->child))
			job_end(ix, j, false);
		else if (j->child.rows)
			job_rows(ix, j);
		return true;
	}
	return false;
}

/* Queue the images whose pause is over. */
static void try_again(struct indexer *ix, uint64_t now_ns)
{
	for (struct mimage *img = ix->again, *next; img; img = next) {
		next = img->next_wanted;
		if (now_ns < img->again_ns)
			continue;
		dequeue(&ix->again, &ix->again_tail, img);
		img->again_ns = 0;
		if (img->wanted)
			enqueue(&ix->queue_tail, img);
		else
			enqueue(&ix->ahead_tail, img);
		start_next(ix);
	}
}

/* Is there work that comes before lines? */
static bool is_busy(const struct indexer *ix)
{
	for (int i = 0; i < JOBS; i++)
		if (ix->jobs[i].child.pid)
			return true;
	return ix->queue || ix->ahead;
}

void indexer_tick(struct indexer *ix, uint64_t now_ns)
{
	exec_race_tick(ix->opening.early, now_ns);
	opening_tick(&ix->opening, now_ns);
	try_again(ix, now_ns);
	for (int i = 0; i < JOBS; i++)
		if (ix->jobs[i].child.pid && job_late(&ix->jobs[i], now_ns))
			job_end(ix, &ix->jobs[i], true);
	cpushare_tick(&ix->share, (int64_t)now_ns, cpushare_idle_ns());
	jobs_pace(ix);
	start_next(ix);
	if (ix->lines) {
		linejobs_pace(ix->lines, &ix->share);
		linejobs_tick(ix->lines, now_ns);
		if (!is_busy(ix) && cpushare_open(&ix->share))
			linejobs_next(ix->lines);
	}
	if (!indexer_busy(ix))
		start_rest(ix);
	if (!ix->kept_fds || now_ns < ix->looked_ns + NSEC_PER_SEC)
		return;
	ix->looked_ns = now_ns;
	for (struct mimage *img = ix->world->by_id; img; img = img->hh_id.next)
		if (img->fd >= 0 && !img->wanted && now_ns - img->fd_since_ns > INDEXER_KEEP_NS)
			drop_fds(ix, img);
}

bool indexer_busy(const struct indexer *ix)
{
	return is_busy(ix) || (ix->lines && linejobs_busy(ix->lines));
}

uint64_t indexer_cpu_ns(const struct indexer *ix)
{
	uint64_t sum = ix->lines ? linejobs_cpu_ns(ix->lines) : 0;

	for (int i = 0; i < JOBS; i++)
		sum += indexchild_cpu_ns(&ix->jobs[i].child);
	return sum;
}

void indexer_free(struct indexer *ix)
{
	if (!ix)
		return;
	for (int i = 0; i < JOBS; i++)
		if (ix->jobs[i].child.pid) {
			kill(ix->jobs[i].child.pid, SIGKILL);
			waitpid(ix->jobs[i].child.pid, NULL, 0);
			job_clear(&ix->jobs[i]);
		}
	linejobs_free(ix->lines);
	opening_release(&ix->opening);
	free(ix->program);
	free(ix);
}
