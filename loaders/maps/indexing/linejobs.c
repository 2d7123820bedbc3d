/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/indexing/linejobs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/budget/cpushare.h"
#include "loaders/lib/host/maps/indexchild.h"
#include "loaders/maps/indexing/opening.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

struct linejobs {
	int epoll_fd;
	char *program;
	struct opening *opening;
	void (*made)(void *ctx, struct mimage *img, const char *key, int fd, const struct stat *st);
	void *ctx;
	struct mimage *queue, **tail;
	/* the one that runs */
	struct indexchild child;
	struct mimage *image; /* NULL: it was dropped meanwhile */
	bool last_try;        /* without lines, for an index that says so */
	uint64_t deadline_ns;
	uint64_t ended_ns; /* CPU time of a child that ended, not yet counted */
	uint64_t pause_ns; /* start none before this time */
};

struct linejobs *linejobs_new(int epoll_fd, const char *program, struct opening *opening,
			      void (*made)(void *ctx, struct mimage *img, const char *key, int fd,
					   const struct stat *st),
			      void *ctx)
{
	struct linejobs *l = mem_alloc(sizeof(*l));

	*l = (struct linejobs){.epoll_fd = epoll_fd,
			       .program = mem_strdup(program),
			       .opening = opening,
			       .made = made,
			       .ctx = ctx};
	l->tail = &l->queue;
	indexchild_init(&l->child);
	return l;
}

void linejobs_free(struct linejobs *l)
{
	if (!l)
		return;
	if (l->child.pid) {
		kill(l->child.pid, SIGKILL);
		waitpid(l->child.pid, NULL, 0);
	}
	indexchild_clear(&l->child);
	free(l->program);
	free(l);
}

uint64_t linejobs_cpu_ns(const struct linejobs *l)
{
	return indexchild_cpu_ns(&l->child);
}

/* ---- the queue ---- */

static void enqueue(struct linejobs *l, struct mimage *img)
{
	img->next_lines = NULL;
	*l->tail = img;
	l->tail = &img->next_lines;
}

void linejobs_add(struct linejobs *l, struct mimage *img)
{
	if (img->lines_asked)
		return;
	img->lines_asked = true;
	enqueue(l, img);
}

static void dequeue(struct linejobs *l, const struct mimage *img)
{
	struct mimage **p = &l->queue;

	while (*p && *p != img)
		p = &(*p)->next_lines;
	if (!*p)
		return;
	*p = img->next_lines;
	if (l->tail == &img->next_lines)
		l->tail = p;
}

void linejobs_drop(struct linejobs *l, struct mimage *img)
{
	dequeue(l, img);
	if (l->image == img)
		l->image = NULL;
}

/* ---- the child ---- */

static bool start(struct linejobs *l, struct mimage *img, bool last_try)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = l};
	struct indexchild *c = &l->child;

	indexchild_clear(c);
	c->elf = opening_anyhow(l->opening, img, &c->st, &c->root_fd);
	if (c->elf < 0) {
		c->elf = -1;
		indexchild_clear(c);
		return false;
	}
	c->have_st = true;
	c->path = mem_strdup(img->path);
	if (indexchild_start(c, l->program, last_try ? "--lost-lines" : "--all-lines",
			     LINEJOBS_NICE)) {
		indexchild_clear(c);
		return false;
	}
	l->image = img;
	l->last_try = last_try;
	l->deadline_ns = (uint64_t)clock_boot_ns() + LINEJOBS_DEADLINE_NS;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, c->sock, &ev);
	return true;
}

void linejobs_next(struct linejobs *l)
{
	while (l->queue && !l->child.pid && (uint64_t)clock_boot_ns() >= l->pause_ns) {
		struct mimage *img = l->queue;

		dequeue(l, img);
		start(l, img, false);
	}
}

/* It was killed, for example: try once more, later. After that leave the index as it is, for the
 * next capture. */
static void failed(struct linejobs *l, struct mimage *img)
{
	if (img->lines_failed)
		return;
	img->lines_failed = true;
	l->pause_ns = (uint64_t)clock_boot_ns() + LINEJOBS_PAUSE_NS;
	enqueue(l, img);
}

static void end(struct linejobs *l, bool late)
{
	struct indexchild *c = &l->child;
	struct mimage *img = l->image;
	cleanup_fd int fd = -1;
	char reason[320];
	enum indexchild_end how;
	bool again = false;

	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, c->sock, NULL);
	l->image = NULL;
	how = indexchild_end(c, late, reason, sizeof(reason));
	l->ended_ns += indexchild_cpu_more(c);
	if (img && how == INDEXCHILD_MADE && !indexchild_take(c, &fd)) {
		l->made(l->ctx, img, c->text, take_fd(&fd), c->have_st ? &c->st : NULL);
	} else if (img) {
		log_info("no lines of %s: %s", img->path,
			 how == INDEXCHILD_MADE ? "they cannot be kept" : reason);
		if (how == INDEXCHILD_FAILED)
			failed(l, img);
		else
			again = !l->last_try;
	}
	indexchild_clear(c);
	if (again)
		start(l, img, true);
}

bool linejobs_ready(struct linejobs *l, void *ptr)
{
	if (ptr != l)
		return false;
	if (l->child.pid && indexchild_hear(&l->child))
		end(l, false);
	return true;
}

void linejobs_pace(struct linejobs *l, struct cpushare *share)
{
	cpushare_spend(share, (int64_t)(indexchild_cpu_more(&l->child) + l->ended_ns));
	l->ended_ns = 0;
	l->deadline_ns += indexchild_pause(&l->child, !cpushare_open(share));
}

bool linejobs_busy(const struct linejobs *l)
{
	return l->child.pid;
}

void linejobs_tick(struct linejobs *l, uint64_t now_ns)
{
	if (l->child.pid && now_ns > l->deadline_ns)
		end(l, true);
}
