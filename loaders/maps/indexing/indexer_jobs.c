// SPDX-License-Identifier: Apache-2.0
/* indexer_jobs: a run of sonde-index, from the open file to what came of it. */
#include "loaders/maps/indexing/indexer_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/maps/cache.h"
#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define SMALL_BYTES (4u << 20)

static int job_start(struct indexer *ix, struct job *j)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = j};
	/* rows that are there already need not come first */
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

void indexer_job_clear(struct job *j)
{
	indexchild_clear(&j->child);
	j->image = NULL;
	j->deadline_ns = 0;
	j->starved_ns = 0;
	j->paced = false;
}

/* What the child was given is opened for the next one. */
static void keep_open(struct indexer *ix, struct job *j, struct mimage *img)
{
	if (img->kind != MP_IMAGE_ELF || j->child.elf < 0)
		return;
	img->fd = take_fd(&j->child.elf);
	img->root_fd = take_fd(&j->child.root_fd);
	img->fd_since_ns = (uint64_t)clock_boot_ns();
	ix->kept_fds++;
}

/* The image's file, ready to be given to a child; or the image is settled at once, and false comes
 * back. */
static bool job_open(struct indexer *ix, struct job *j, struct mimage *img)
{
	int fd = img->fd >= 0 ? take_fd(&img->fd) : -1;

	indexer_job_clear(j);
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
		indexer_refuse(ix, img, openin_reason(fd));
		return false;
	}
	j->child.elf = fd;
	if (j->child.have_st && indexer_settle(ix, img, &j->child.st, j->child.root_fd)) {
		indexer_tell(ix, img);
		return false;
	}
	j->image = img;
	j->child.path = mem_strdup(img->path);
	return true;
}

/* May one more work within the share? */
static bool may_pace(const struct indexer *ix)
{
	int n = 0;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		n += ix->jobs[i].child.pid && ix->jobs[i].paced;
	return n < INDEXER_PACED && cpushare_open(&ix->share);
}

static struct job *job_free_slot(struct indexer *ix, bool paced)
{
	for (int i = 0; i < INDEXER_CHILDREN && (!paced || may_pace(ix)); i++)
		if (!ix->jobs[i].child.pid)
			return &ix->jobs[i];
	return NULL;
}

/* Only the rows of a file that has samples are not bound by the share, and symbols that somebody
 * waits for. */
static bool is_paced(const struct mimage *img)
{
	return !img->wanted || (img->rows_only && !img->awaited);
}

static void job_pause(struct job *j, bool stop)
{
	j->deadline_ns += indexchild_pause(&j->child, stop);
}

/* What somebody waits for is not left to the idle time of a busy host; a small file is a matter of
 * milliseconds. */
void indexer_hurry(struct indexer *ix, const struct mimage *img)
{
	int nice = img->file_bytes && img->file_bytes <= SMALL_BYTES ?
			   getpriority(PRIO_PROCESS, 0) :
			   0;

	for (int i = 0; i < INDEXER_CHILDREN; i++) {
		struct job *j = &ix->jobs[i];

		if (!j->child.pid || j->image != img)
			continue;
		setpriority(PRIO_PROCESS, (id_t)j->child.pid, nice);
		j->paced = is_paced(img);
		if (!j->paced)
			job_pause(j, false);
	}
}

/* Rows come first, then the smallest file: it is ready in milliseconds, and those that wait for a
 * large one wait for seconds anyhow. */
static bool comes_before(const struct mimage *a, const struct mimage *b)
{
	if (is_paced(a) != is_paced(b))
		return is_paced(b);
	return a->rows_only != b->rows_only ? !a->rows_only : a->file_bytes < b->file_bytes;
}

static struct mimage *next_wanted(struct mimage *queue)
{
	struct mimage *best = queue;

	for (struct mimage *img = queue; img; img = img->next_wanted)
		if (comes_before(img, best))
			best = img;
	return best;
}

static void image_start(struct indexer *ix, struct job *j, struct mimage *img, bool paced)
{
	int rc;

	if (!job_open(ix, j, img)) {
		indexer_job_clear(j);
		return;
	}
	j->paced = paced;
	rc = job_start(ix, j);
	if (rc) {
		char reason[128];

		snprintf(reason, sizeof(reason), "cannot start sonde-index: %s", strerror(-rc));
		indexer_refuse(ix, img, reason);
		indexer_job_clear(j);
	} else if (img->wanted) {
		indexer_hurry(ix, img);
	}
}

void indexer_start_next(struct indexer *ix)
{
	while (ix->queue || ix->ahead) {
		struct mimage *img = ix->queue ? next_wanted(ix->queue) : ix->ahead;
		const bool paced = is_paced(img);
		struct job *j = job_free_slot(ix, paced);

		if (!j)
			return;
		if (ix->queue)
			indexer_dequeue(&ix->queue, &ix->queue_tail, img);
		else
			indexer_dequeue(&ix->ahead, &ix->ahead_tail, img);
		image_start(ix, j, img, paced);
	}
}

void indexer_start_rest(struct indexer *ix)
{
	struct job *j = ix->rest && cpushare_is_full(&ix->share) ? job_free_slot(ix, true) : NULL;
	struct mimage *img = ix->rest;

	if (!j)
		return;
	indexer_dequeue(&ix->rest, &ix->rest_tail, img);
	image_start(ix, j, img, true);
}

/* ---- the share ---- */

/* What it has used since then counts where it is bound by the share. */
static void job_count(struct indexer *ix, struct job *j)
{
	uint64_t more = indexchild_cpu_more(&j->child);

	if (j->paced)
		cpushare_spend(&ix->share, (int64_t)more);
}

void indexer_jobs_pace(struct indexer *ix)
{
	for (int i = 0; i < INDEXER_CHILDREN; i++)
		job_count(ix, &ix->jobs[i]);
	for (int i = 0; i < INDEXER_CHILDREN; i++)
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

/* The symbols come later: as soon as may be for who wants them, else when there is nothing else to
 * do. What was opened stays so for that. */
static void job_put_off(struct indexer *ix, struct job *j, struct mimage *img)
{
	job_cancel(ix, j);
	keep_open(ix, j, img);
	indexer_job_clear(j);
	if (img->wanted)
		indexer_enqueue(&ix->queue_tail, img);
	else
		indexer_enqueue(&ix->rest_tail, img);
	indexer_start_next(ix);
}

/* Is there time for the symbols now? The child is there, and need not read the file again. */
static bool may_go_on(const struct indexer *ix, const struct job *j, const struct mimage *img)
{
	if (img->wanted)
		return img->awaited || j->paced || may_pace(ix);
	return !ix->queue && !ix->ahead && cpushare_is_full(&ix->share);
}

/* true: they are taken, and told. */
static bool rows_take(struct indexer *ix, const struct job *j, struct mimage *img)
{
	int copy = -1;

	if (img->state != IMAGE_PENDING || !cache_key_ok(j->child.text) ||
	    indexchild_take(&j->child, &copy) || !indexer_adopt_rows(ix, img, j->child.text, copy))
		return false;
	indexer_tell(ix, img);
	return true;
}

void indexer_job_rows(struct indexer *ix, struct job *j)
{
	struct mimage *img = j->image;

	job_count(ix, j);
	if (!img) { /* it was dropped */
		job_cancel(ix, j);
		indexer_job_clear(j);
		indexer_start_next(ix);
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
		indexer_refuse(ix, img, "sonde-index wrote an index that cannot be read");
		return;
	}
	if (indexer_adopt(ix, img, j->child.text, copy, j->child.have_st ? &j->child.st : NULL)) {
		indexer_refuse(ix, img,
			       "its index cannot be stored, and too many are kept in memory");
		return;
	}
	indexer_drop_fds(ix, img);
	indexer_tell(ix, img);
}

/* The same file's index, now with lines: it takes the place of the one that was told. */
void indexer_lines_made(void *ctx, struct mimage *img, const char *key, int fd,
			const struct stat *st)
{
	struct indexer *ix = ctx;

	if (img->state != IMAGE_READY || !cache_key_ok(key))
		close(fd);
	else if (!indexer_adopt(ix, img, key, fd, st))
		indexer_tell(ix, img);
}

static void job_refused(struct indexer *ix, struct job *j, const char *reason)
{
	if (j->child.have_st)
		cache_refuse(ix->cache, &j->child.st, reason);
	if (j->image)
		indexer_refuse(ix, j->image, reason);
}

/* Not for what is in the file (it was killed; the disk was full): nothing of it is remembered, and
 * it is tried again, but not for ever. What was opened stays so for that. */
static void job_failed(struct indexer *ix, struct job *j, const char *reason)
{
	static const uint64_t pause_ns[INDEXER_TRIES - 1] = {NSEC_PER_SEC, 10 * NSEC_PER_SEC};
	struct mimage *img = j->image;
	uint64_t now = (uint64_t)clock_boot_ns();

	if (img->index_failed == INDEXER_TRIES - 1) {
		indexer_refuse(ix, img, reason);
		return;
	}
	log_info("no index of %s yet: %s", img->path, reason);
	img->again_ns = now + pause_ns[img->index_failed++];
	keep_open(ix, j, img);
	indexer_enqueue(&ix->again_tail, img);
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

bool indexer_job_late(struct job *j, uint64_t now_ns)
{
	uint64_t waited;

	if (now_ns <= j->deadline_ns || indexchild_speaks(&j->child)) /* it waits for us, perhaps */
		return false;
	waited = starved(j->child.pid);
	if (waited <= j->starved_ns)
		return true;
	j->deadline_ns += waited - j->starved_ns;
	j->starved_ns = waited;
	return now_ns > j->deadline_ns;
}

void indexer_job_end(struct indexer *ix, struct job *j, bool late)
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
	indexer_job_clear(j);
	indexer_start_next(ix);
}
