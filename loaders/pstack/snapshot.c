/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/snapshot.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/start/check.h"
#include "probes/pstack.skel.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define CALIBRATIONS 5
#define NAP_US       200
#define THREADS_MAX  4000000
#define SOCKETS_MAX  4000000

struct snapshots {
	struct pstack_bpf *skel;
	struct bpf_link *link, *files; /* files NULL: not needed so far */
	int64_t offset_ns;             /* boot clock less the scheduler's */
};

static int iter_open(struct bpf_link *link, struct err *e)
{
	int fd = bpf_iter_create(bpf_link__fd(link));

	if (fd < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot read the task iterator: %s",
			       strerror(errno));
	return fd;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* A thread that has just slept came onto its CPU a few microseconds ago. The median, because it may
 * be preempted again in between. */
static int calibrate(struct snapshots *s, struct err *e)
{
	int64_t offsets[CALIBRATIONS];

	for (int i = 0; i < CALIBRATIONS; i++) {
		static char chunk[1 << 16];
		const struct pstack_record *r = (const void *)chunk;
		cleanup_fd int fd = iter_open(s->link, e);
		int64_t now;
		ssize_t n;

		if (fd < 0)
			return fd;
		usleep(NAP_US);
		now = clock_boot_ns();
		n = read(fd, chunk, sizeof(chunk));
		if (n < (ssize_t)sizeof(*r) || r->magic != PSTACK_MAGIC)
			return err_set(e, n < 0 ? -errno : -EPROTO, EXIT_RUNTIME,
				       "the task iterator returned no thread");
		offsets[i] = now - (int64_t)r->now_ns;
	}
	qsort(offsets, CALIBRATIONS, sizeof(offsets[0]), compare);
	s->offset_ns = offsets[CALIBRATIONS / 2];
	return 0;
}

static const struct leftout_program OPTIONAL[] = {
	{"pstack_file",
	 "which sockets threads in epoll_wait, poll and select wait for is not shown"},
	{0}};

static int skel_load(struct snapshots *s, uint32_t only_tgid)
{
	int rc;

	s->skel = pstack_bpf__open();
	if (!s->skel)
		return -errno;
	s->skel->rodata->only_tgid = only_tgid;
	leftout_disable(s->skel->obj);
	rc = pstack_bpf__load(s->skel);
	if (rc)
		return rc;
	s->link = bpf_program__attach_iter(s->skel->progs.pstack_task, NULL);
	return s->link ? 0 : -errno;
}

int snapshots_open(uint32_t only_tgid, struct snapshots **out, struct err *e)
{
	struct snapshots *s = mem_alloc(sizeof(*s));
	int rc;

	load_init(false);
	while ((rc = skel_load(s, only_tgid)) && leftout_next(OPTIONAL, rc))
		pstack_bpf__destroy(s->skel);
	if (rc)
		rc = load_error(rc, "the task iterator", e);
	else
		rc = calibrate(s, e);
	if (rc) {
		snapshots_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void snapshots_close(struct snapshots *s)
{
	if (!s)
		return;
	bpf_link__destroy(s->link);
	bpf_link__destroy(s->files);
	pstack_bpf__destroy(s->skel);
	free(s);
}

/* 0, or why the sockets cannot be read. */
static int files_attach(struct snapshots *s)
{
	if (!bpf_program__autoload(s->skel->progs.pstack_file))
		return -EPERM;
	if (!s->files)
		s->files = bpf_program__attach_iter(s->skel->progs.pstack_file, NULL);
	return s->files ? 0 : -errno;
}

void snapshots_check(struct check *c)
{
	struct snapshots *s;
	struct err e = {0};

	if (snapshots_open(0, &s, &e)) {
		check_add_err(c, "programs", &e);
		return;
	}
	if (files_attach(s))
		leftout_add(OPTIONAL, "pstack_file");
	snapshots_close(s);
	check_add(c, "programs", CHECK_OK, NULL, "loaded, attached and unloaded");
	leftout_check(c);
}

static int by_tid(const void *a, const void *b)
{
	uint32_t x = ((const struct pstack_record *)a)->tid,
		 y = ((const struct pstack_record *)b)->tid;

	return x < y ? -1 : x > y;
}

static void clock_turn(const struct snapshots *s, struct snapshot *shot)
{
	for (size_t i = 0; i < shot->n; i++) {
		struct pstack_record *r = &shot->threads[i];
		int64_t left = (int64_t)r->left_ns + s->offset_ns;

		if (!(r->flags & PSTACK_CLOCK) || !r->left_ns || left < 0)
			left = 0;
		r->left_ns = left > (int64_t)shot->time_ns ? shot->time_ns : (uint64_t)left;
	}
}

/* All that an iterator tells: `*out` has `*bytes` of it. */
static int iter_read(struct bpf_link *link, size_t most, void **out, size_t *bytes, struct err *e)
{
	cleanup_fd int fd = iter_open(link, e);
	size_t cap = 0;
	char *all = NULL;
	ssize_t n = 1;

	*bytes = 0;
	if (fd < 0)
		return fd;
	while (n > 0 && *bytes < most) {
		if (cap - *bytes < (1 << 16)) {
			cap = cap ? cap * 2 : 1 << 20;
			all = mem_realloc(all, cap);
		}
		n = read(fd, all + *bytes, cap - *bytes);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			n = 1;
		else if (n > 0)
			*bytes += (size_t)n;
	}
	if (n < 0) {
		free(all);
		return err_set(e, -errno, EXIT_RUNTIME, "cannot read the task iterator: %s",
			       strerror(errno));
	}
	*out = all;
	return 0;
}

int snapshot_take(struct snapshots *s, struct snapshot *out, struct err *e)
{
	struct snapshot shot = {0};
	void *threads = NULL;
	size_t bytes;
	int rc = iter_read(s->link, THREADS_MAX * sizeof(*shot.threads), &threads, &bytes, e);

	if (rc)
		return rc;
	shot.threads = threads;
	shot.n = bytes / sizeof(*shot.threads);
	shot.time_ns = (uint64_t)clock_boot_ns();
	clock_turn(s, &shot);
	qsort(shot.threads, shot.n, sizeof(*shot.threads), by_tid);
	*out = shot;
	return 0;
}

void snapshot_release(struct snapshot *s)
{
	free(s->threads);
	*s = (struct snapshot){0};
}

const struct pstack_record *snapshot_find(const struct snapshot *s,
					  const struct pstack_record *thread)
{
	const struct pstack_record *r = bsearch(thread, s->threads, s->n, sizeof(*thread), by_tid);

	return r && r->tgid == thread->tgid && r->start_ns == thread->start_ns ? r : NULL;
}

/* ---- sockets ---- */

static int by_descriptor(const void *a, const void *b)
{
	const struct pstack_socket *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return (x->fd > y->fd) - (x->fd < y->fd);
}

int sockets_read(struct snapshots *s, struct sockets *out, struct err *e)
{
	void *rows = NULL;
	size_t bytes = 0;
	int rc = files_attach(s);

	if (rc)
		rc = load_error(rc, "the file iterator", e);
	if (!rc)
		rc = iter_read(s->files, SOCKETS_MAX * sizeof(*out->rows), &rows, &bytes, e);
	if (rc)
		return rc;
	*out = (struct sockets){.rows = rows, .n = bytes / sizeof(*out->rows)};
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_descriptor);
	return 0;
}

void sockets_release(struct sockets *s)
{
	free(s->rows);
	*s = (struct sockets){0};
}

const struct pstack_socket *sockets_find(const struct sockets *s, uint32_t tgid, uint32_t fd)
{
	const struct pstack_socket key = {.tgid = tgid, .fd = fd};

	return s->n ? bsearch(&key, s->rows, s->n, sizeof(key), by_descriptor) : NULL;
}
