/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/taps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define STACK           (64 * 1024)
#define SEMAPHORE_SHIFT 32 /* /sys/bus/event_source/devices/uprobe/format/ref_ctr_offset */

/* ---- begin ---- */

static int number_read(const char *path, uint64_t *out)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	if (fd < 0)
		return -errno;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		return -EIO;
	*out = strtoull(text, NULL, 10);
	return 0;
}

/* One CPU's event is enough: its program runs on all. */
static int event_open(struct perf_event_attr *a)
{
	int fd;

	a->size = sizeof(*a);
	fd = (int)syscall(SYS_perf_event_open, a, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Takes the event. */
static int attach(struct bpf_program *prog, int event, uint64_t cookie, struct tap *out)
{
	LIBBPF_OPTS(bpf_perf_event_opts, o, .bpf_cookie = cookie);
	cleanup_fd int mine = fcntl(event, F_DUPFD_CLOEXEC, 0);
	struct bpf_link *link = bpf_program__attach_perf_event_opts(prog, event, &o);
	int err = link ? 0 : -errno;

	if (err) {
		close(event);
		return err;
	}
	*out = (struct tap){.link = link,
			    .event = bpf_link__fd(link) == event ? -1 : take_fd(&mine)};
	return 0;
}

int tap_tracepoint(struct bpf_program *prog, uint64_t id, struct tap *out)
{
	struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT, .config = id};
	int event = event_open(&a);

	return event < 0 ? event : attach(prog, event, 0, out);
}

int tap_uprobe(struct bpf_program *prog, const char *path, uint64_t offset, uint64_t semaphore,
	       uint64_t cookie, struct tap *out)
{
	struct perf_event_attr a = {.config = semaphore << SEMAPHORE_SHIFT,
				    .config1 = (uint64_t)(uintptr_t)path,
				    .config2 = offset};
	uint64_t type = 0;
	int err = number_read("/sys/bus/event_source/devices/uprobe/type", &type);

	if (semaphore >> SEMAPHORE_SHIFT) /* it would be another place of the file */
		return -ERANGE;
	if (err)
		return err;
	a.type = (uint32_t)type;
	err = event_open(&a);
	return err < 0 ? err : attach(prog, err, cookie, out);
}

void taps_add(struct taps *t, struct tap tap)
{
	mem_grow(t->items, t->n, t->cap);
	t->items[t->n++] = tap;
}

void taps_release(struct taps *t)
{
	free(t->items);
	*t = (struct taps){0};
}

/* ---- end ---- */

static void *link_end(void *link)
{
	bpf_link__destroy(link);
	return NULL;
}

static void links_end(struct taps *t)
{
	cleanup_free pthread_t *threads = mem_array(t->n, sizeof(*threads));
	pthread_attr_t attr;
	size_t n = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr,
				  STACK > PTHREAD_STACK_MIN ? STACK : (size_t)PTHREAD_STACK_MIN);
	for (size_t i = 0; i < t->n; i++) {
		if (pthread_create(&threads[n], &attr, link_end, t->items[i].link))
			link_end(t->items[i].link);
		else
			n++;
	}
	pthread_attr_destroy(&attr);
	while (n)
		pthread_join(threads[--n], NULL);
}

/* Of a child of a program with threads: nothing but system calls. */
static void others_close(const int *events, size_t n)
{
	unsigned int from = 0;

	for (size_t i = 0; i < n; i++) {
		if ((unsigned int)events[i] > from)
			syscall(SYS_close_range, from, (unsigned int)events[i] - 1, 0);
		from = (unsigned int)events[i] + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? -1 : 1;
}

/*
 * The grandchild ends after we have closed them (it waits for the end of our pipe), and the events
 * end with it; no process waits for that. It holds nothing else, in particular no lock of ours. If
 * the pipe or the child cannot be made, we wait.
 */
static void events_leave(int *events, size_t n)
{
	int go[2];
	pid_t child;

	if (pipe2(go, O_CLOEXEC))
		go[0] = go[1] = -1;
	else
		events[n++] = go[0];
	qsort(events, n, sizeof(*events), by_number);
	child = go[0] >= 0 ? fork() : -1;
	if (!child) {
		others_close(events, n);
		if (!fork() && read(go[0], &(char){0}, 1) < 0)
			_exit(1);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < n; i++)
		close(events[i]);
	if (go[1] >= 0)
		close(go[1]);
}

void taps_end(struct taps *t)
{
	cleanup_free int *events = mem_array(t->n + 2, sizeof(*events));
	size_t n = 0;

	if (!t->n)
		return;
	links_end(t);
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i].event >= 0)
			events[n++] = t->items[i].event;
	if (n)
		events_leave(events, n);
	taps_release(t);
}
