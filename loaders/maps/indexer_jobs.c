// SPDX-License-Identifier: Apache-2.0
/* indexer_jobs: a run of sonde-index, from the open file to what came of it. */
#include "loaders/maps/indexer_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/cache.h"
#include "loaders/lib/host/openin.h"
#include "loaders/lib/host/proc.h"
#include "loaders/maps/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define SMALL_BYTES (4u << 20)

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

void indexer_job_clear(struct job *j)
{
	indexchild_clear(&j->child);
	j->image = NULL;
	j->deadline_ns = 0;
	j->starved_ns = 0;
}

/* The image's file, ready to be given to a child; or the image is settled at once, and false comes back. */
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

/* What somebody waits for is not left to the idle time of a busy host; a small file is a matter of milliseconds. */
void indexer_hurry(const struct indexer *ix, const struct mimage *img)
{
	int nice = img->file_bytes && img->file_bytes <= SMALL_BYTES ? getpriority(PRIO_PROCESS, 0) : 0;

	for (int i = 0; i < INDEXER_CHILDREN; i++)
		if (ix->jobs[i].child.pid && ix->jobs[i].image == img)
			setpriority(PRIO_PROCESS, (id_t)ix->jobs[i].child.pid, nice);
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

void indexer_start_next(struct indexer *ix)
{
	struct job *j;

	while ((ix->queue || ix->ahead) && (j = job_free_slot(ix, ix->queue))) {
		struct mimage *img = ix->queue ? smallest(ix->queue) : ix->ahead;
		int rc;

		if (ix->queue)
			indexer_dequeue(&ix->queue, &ix->queue_tail, img);
		else
			indexer_dequeue(&ix->ahead, &ix->ahead_tail, img);
		if (!job_open(ix, j, img)) {
			indexer_job_clear(j);
			continue;
		}
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
		indexer_refuse(ix, img, "its index cannot be stored, and too many are kept in memory");
		return;
	}
	indexer_drop_fds(ix, img);
	indexer_tell(ix, img);
}

/* The same file's index, now with lines: it takes the place of the one that was told. */
void indexer_lines_made(void *ctx, struct mimage *img, const char *key, int fd, const struct stat *st)
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

/* Not for what is in the file (it was killed; the disk was full): nothing of it is remembered, and it is tried again, but not
 * for ever. What was opened stays so for that. */
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
	if (img->kind == MP_IMAGE_ELF && j->child.elf >= 0) {
		img->fd = take_fd(&j->child.elf);
		img->root_fd = take_fd(&j->child.root_fd);
		img->fd_since_ns = now;
		ix->kept_fds++;
	}
	indexer_enqueue(&ix->again_tail, img);
}

/* /proc/PID/schedstat: time on a CPU, time of waiting for one, both in ns. */
static uint64_t starved(pid_t pid)
{
	cleanup_free char *text = NULL;
	unsigned long long ran, waited;
	size_t len;

	if (proc_read((uint32_t)pid, "schedstat", 128, &text, &len) || sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return 0;
	return waited < INDEXER_STARVED_NS ? waited : INDEXER_STARVED_NS;
}

bool indexer_job_late(struct job *j, uint64_t now_ns)
{
	uint64_t waited;

	if (now_ns <= j->deadline_ns)
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
	if (how == INDEXCHILD_REFUSED)
		job_refused(ix, j, reason);
	else if (j->image && how == INDEXCHILD_MADE)
		job_success(ix, j);
	else if (j->image)
		job_failed(ix, j, reason);
	indexer_job_clear(j);
	indexer_start_next(ix);
}
