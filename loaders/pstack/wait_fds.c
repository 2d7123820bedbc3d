/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/wait_fds.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

/* By DWARF number: a system call's arguments (psABI, A.2.1) */
#define ARG1 5
#define ARG2 4
#define ARG3 1
#define ARG4 10

static bool is_epoll(int32_t number)
{
#ifdef SYS_epoll_wait
	if (number == SYS_epoll_wait)
		return true;
#endif
#ifdef SYS_epoll_pwait2
	if (number == SYS_epoll_pwait2)
		return true;
#endif
	return number == SYS_epoll_pwait;
}

static bool is_poll(int32_t number)
{
#ifdef SYS_poll
	if (number == SYS_poll)
		return true;
#endif
	return number == SYS_ppoll;
}

static bool is_select(int32_t number)
{
#ifdef SYS_select
	if (number == SYS_select)
		return true;
#endif
	return number == SYS_pselect6;
}

bool wait_fds_is_one(const struct pstack_record *r)
{
	return (r->flags & PSTACK_IN_SYSCALL) && !(r->flags & PSTACK_32BIT) &&
	       (is_epoll(r->syscall) || is_poll(r->syscall) || is_select(r->syscall));
}

static void add(struct wait_fds *w, uint32_t fd, uint64_t ino)
{
	if (w->n >= WAIT_FDS_MAX)
		return;
	mem_grow(w->rows, w->n, w->cap);
	w->rows[w->n++] = (struct wait_fd){.fd = fd, .ino = ino};
}

/* "tfd:        5 events:       19 data: ffff  pos:0 ino:3a6f sdev:9"
 * (Documentation/filesystems/proc.rst, 3.8); ino from 4.13 on. */
bool wait_fds_epoll_line(const char *line, struct wait_fd *out)
{
	const char *ino = strstr(line, " ino:");
	unsigned fd;

	if (sscanf(line, "tfd: %9u", &fd) != 1)
		return false;
	*out = (struct wait_fd){.fd = fd, .ino = ino ? strtoull(ino + 5, NULL, 16) : 0};
	return true;
}

void wait_fds_poll(const void *array, size_t bytes, struct wait_fds *out)
{
	struct pollfd p;

	for (size_t at = 0; at + sizeof(p) <= bytes; at += sizeof(p)) {
		memcpy(&p, (const char *)array + at, sizeof(p));
		if (p.fd >= 0)
			add(out, (uint32_t)p.fd, 0);
	}
}

void wait_fds_set(const void *set, size_t bytes, uint32_t n, struct wait_fds *out)
{
	const uint8_t *bits = set;

	for (uint32_t fd = 0; fd < n && fd / 8 < bytes; fd++)
		if (bits[fd / 8] >> (fd % 8) & 1)
			add(out, fd, 0);
}

static int by_fd(const void *a, const void *b)
{
	const struct wait_fd *x = a, *y = b;

	return (x->fd > y->fd) - (x->fd < y->fd);
}

/* The kernel lists them by where their files lie in its memory. */
static void epoll_read(const struct pstack_record *r, struct wait_fds *out)
{
	char path[64];
	cleanup_free char *line = NULL;
	struct wait_fd x;
	size_t cap = 0;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%d", r->tid, (int)r->regs[ARG1]);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && out->n < WAIT_FDS_MAX && getline(&line, &cap, f) > 0)
		if (wait_fds_epoll_line(line, &x))
			add(out, x.fd, x.ino);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_fd);
}

/* How many bytes of the thread's memory were had. */
static size_t memory_read(const struct pstack_record *r, uint64_t from, void *to, size_t bytes)
{
	struct iovec here = {.iov_base = to, .iov_len = bytes},
		     there = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
	ssize_t got = bytes ? process_vm_readv((pid_t)r->tgid, &here, 1, &there, 1, 0) : 0;

	return got > 0 ? (size_t)got : 0;
}

static void poll_read(const struct pstack_record *r, struct wait_fds *out)
{
	size_t n = r->regs[ARG2] < WAIT_FDS_MAX ? (size_t)r->regs[ARG2] : WAIT_FDS_MAX;
	cleanup_free struct pollfd *all = mem_array(n + 1, sizeof(*all));

	wait_fds_poll(all, memory_read(r, r->regs[ARG1], all, n * sizeof(*all)), out);
}

static void select_read(const struct pstack_record *r, struct wait_fds *out)
{
	static const int sets[] = {ARG2, ARG3, ARG4};
	uint32_t n = (int32_t)r->regs[ARG1] > 0 ? (uint32_t)r->regs[ARG1] : 0;
	size_t bytes;

	n = n < WAIT_FDS_MAX ? n : WAIT_FDS_MAX;
	bytes = (n + 63) / 64 * 8;
	cleanup_free uint8_t *all = mem_array(bytes + 1, 1);
	cleanup_free uint8_t *one = mem_array(bytes + 1, 1);
	for (int i = 0; i < 3; i++) {
		size_t got = r->regs[sets[i]] ? memory_read(r, r->regs[sets[i]], one, bytes) : 0;

		for (size_t k = 0; k < got; k++)
			all[k] |= one[k];
	}
	wait_fds_set(all, bytes, n, out);
}

void wait_fds_read(const struct pstack_record *r, struct wait_fds *out)
{
	*out = (struct wait_fds){0};
	if (is_epoll(r->syscall))
		epoll_read(r, out);
	else if (is_poll(r->syscall))
		poll_read(r, out);
	else if (is_select(r->syscall))
		select_read(r, out);
}

void wait_fds_release(struct wait_fds *w)
{
	free(w->rows);
	*w = (struct wait_fds){0};
}
