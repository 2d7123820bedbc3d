// SPDX-License-Identifier: Apache-2.0
/* indexer: see the header. */
#include "loaders/maps/indexing/indexer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/host/maps/indexchild.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/indexing/linejobs.h"
#include "loaders/maps/indexing/opening.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"
#include "schema/image/lines.h"

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
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		indexchild_init(&ix->jobs[i].child);
	if (lines)
		ix->lines = linejobs_new(epoll_fd, program, &ix->opening, indexer_lines_made, ix);
	return ix;
}

/* ---- telling ---- */

/* Of a file on disk: nobody who gets it looks again (image_open_sound_fd). */
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

/* It is to be made again, for who wants it. */
static int gone(struct indexer *ix, struct mimage *img, int err)
{
	bool wanted = img->wanted;

	img->state = IMAGE_PENDING;
	img->wanted = img->rows_only = false;
	indexer_dequeue(&ix->rest, &ix->rest_tail, img);
	if (wanted)
		indexer_want(ix, img, false);
	return err;
}

static int damaged(struct indexer *ix, struct mimage *img)
{
	cache_remove(ix->cache, img->key);
	if (img->rotten) {
		indexer_refuse(ix, img, "its index cannot be read");
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
		if (fd < 0) /* it is made again */
			return;
	}
	if (fd >= 0 && ix->lines && !img->rows_only && image_lines_later(fd))
		linejobs_add(ix->lines, img);
	hub_emit_index(ix->hub, &m, img->key ? img->key : "", img->reason ? img->reason : "", fd);
}

void indexer_refuse(struct indexer *ix, struct mimage *img, const char *reason)
{
	indexer_set_refused(img, reason);
	indexer_drop_fds(ix, img);
	indexer_tell(ix, img);
}

void indexer_enqueue(struct mimage ***tail, struct mimage *img)
{
	img->next_wanted = NULL;
	**tail = img;
	*tail = &img->next_wanted;
}

void indexer_dequeue(struct mimage **head, struct mimage ***tail, const struct mimage *img)
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

void indexer_want(struct indexer *ix, struct mimage *img, bool damaged)
{
	if (damaged && img->state == IMAGE_READY && !img->rows_only) {
		if (img->redone) {
			cache_remove(ix->cache, img->key);
			indexer_refuse(ix, img, "its index cannot be read");
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
			indexer_hurry(ix, img);
		indexer_start_next(ix);
		return;
	}
	img->wanted = true;
	indexer_tell(ix, img); /* the rows, where there are some */
	if (img->again_ns)
		return;
	if (is_running(ix, img)) { /* told at its end */
		indexer_hurry(ix, img);
		return;
	}
	indexer_dequeue(&ix->ahead, &ix->ahead_tail, img);
	indexer_dequeue(&ix->rest, &ix->rest_tail, img);
	indexer_enqueue(&ix->queue_tail, img);
	indexer_start_next(ix);
}

void indexer_ahead(struct indexer *ix, struct mimage *img)
{
	if (img->state != IMAGE_PENDING || img->wanted || img->again_ns || is_running(ix, img))
		return;
	indexer_dequeue(&ix->ahead, &ix->ahead_tail, img);
	indexer_enqueue(&ix->ahead_tail, img);
	indexer_start_next(ix);
}

void indexer_drop(struct indexer *ix, struct mimage *img)
{
	indexer_dequeue(&ix->queue, &ix->queue_tail, img);
	indexer_dequeue(&ix->ahead, &ix->ahead_tail, img);
	indexer_dequeue(&ix->again, &ix->again_tail, img);
	indexer_dequeue(&ix->rest, &ix->rest_tail, img);
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].image == img)
			ix->jobs[i].image = NULL;
	if (ix->lines)
		linejobs_drop(ix->lines, img);
	indexer_drop_fds(ix, img);
	indexer_drop_memory(ix, img);
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
			indexer_job_end(ix, j, false);
		else if (j->child.rows)
			indexer_job_rows(ix, j);
		return true;
	}
	return false;
}

/* Those whose time has come are queued as any other. */
static void try_again(struct indexer *ix, uint64_t now_ns)
{
	for (struct mimage *img = ix->again, *next; img; img = next) {
		next = img->next_wanted;
		if (now_ns < img->again_ns)
			continue;
		indexer_dequeue(&ix->again, &ix->again_tail, img);
		img->again_ns = 0;
		if (img->wanted)
			indexer_enqueue(&ix->queue_tail, img);
		else
			indexer_enqueue(&ix->ahead_tail, img);
		indexer_start_next(ix);
	}
}

/* With what comes before lines. */
static bool is_busy(const struct indexer *ix)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid)
			return true;
	return ix->queue || ix->ahead;
}

void indexer_tick(struct indexer *ix, uint64_t now_ns)
{
	exec_race_tick(ix->opening.early, now_ns);
	try_again(ix, now_ns);
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid && indexer_job_late(&ix->jobs[i], now_ns))
			indexer_job_end(ix, &ix->jobs[i], true);
	cpushare_tick(&ix->share, (int64_t)now_ns, cpushare_idle_ns());
	indexer_jobs_pace(ix);
	indexer_start_next(ix);
	if (ix->lines) {
		linejobs_pace(ix->lines, &ix->share);
		linejobs_tick(ix->lines, now_ns);
		if (!is_busy(ix) && cpushare_open(&ix->share))
			linejobs_next(ix->lines);
	}
	if (!indexer_busy(ix))
		indexer_start_rest(ix);
	if (!ix->kept_fds || now_ns < ix->looked_ns + NSEC_PER_SEC)
		return;
	ix->looked_ns = now_ns;
	for (struct mimage *img = ix->world->by_id; img; img = img->hh_id.next)
		if (img->fd >= 0 && !img->wanted && now_ns - img->fd_since_ns > INDEXER_KEEP_NS)
			indexer_drop_fds(ix, img);
}

bool indexer_busy(const struct indexer *ix)
{
	return is_busy(ix) || (ix->lines && linejobs_busy(ix->lines));
}

uint64_t indexer_cpu_ns(const struct indexer *ix)
{
	uint64_t sum = ix->lines ? linejobs_cpu_ns(ix->lines) : 0;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		sum += indexchild_cpu_ns(&ix->jobs[i].child);
	return sum;
}

void indexer_free(struct indexer *ix)
{
	if (!ix)
		return;
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid) {
			kill(ix->jobs[i].child.pid, SIGKILL);
			waitpid(ix->jobs[i].child.pid, NULL, 0);
			indexer_job_clear(&ix->jobs[i]);
		}
	linejobs_free(ix->lines);
	if (ix->opening.own_root > 0)
		close(ix->opening.own_root);
	free(ix->program);
	free(ix);
}
