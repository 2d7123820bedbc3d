/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/exec_race.h"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/world/cgroups.h"
#include "loaders/maps/world/containers.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

struct held {
	uint64_t start_ns, since_ns;
	struct root_id root;
	uint32_t tgid;
	int root_fd, exe_fd; /* -1: it could not be opened */
};

struct exec_race {
	struct containers *containers;
	struct cgroups *cgroups; /* the thread's own */
	struct ring_buffer *ring;
	int stop_fd;
	pthread_t thread;
	pthread_mutex_t lock;            /* of the rest */
	struct held held[EXEC_RACE_MAX]; /* the newest at next - 1, round and round */
	size_t next, n;
};

/* ---- what is held ---- */

static struct held *back_at(struct exec_race *e, size_t back)
{
	return &e->held[(e->next + EXEC_RACE_MAX - back) % EXEC_RACE_MAX];
}

static void close_held(struct held *h)
{
	if (h->root_fd >= 0)
		close(h->root_fd);
	if (h->exe_fd >= 0)
		close(h->exe_fd);
}

static void put(struct exec_race *e, const struct held *h)
{
	pthread_mutex_lock(&e->lock);
	if (e->n == EXEC_RACE_MAX)
		close_held(back_at(e, e->n--));
	*back_at(e, 0) = *h;
	e->next = (e->next + 1) % EXEC_RACE_MAX;
	e->n++;
	pthread_mutex_unlock(&e->lock);
}

static int dup_of(int fd)
{
	return fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
}

bool exec_race_get(struct exec_race *e, uint32_t tgid, uint64_t start_ns,
		   const struct root_id *root, int *root_fd, int *exe_fd)
{
	*root_fd = *exe_fd = -1;
	if (!e)
		return false;
	pthread_mutex_lock(&e->lock);
	for (size_t back = 1; back <= e->n && (*root_fd < 0 || *exe_fd < 0); back++) {
		const struct held *h = back_at(e, back);

		if (*root_fd < 0 && !memcmp(&h->root, root, sizeof(*root)))
			*root_fd = dup_of(h->root_fd);
		if (*exe_fd < 0 && h->tgid == tgid && h->start_ns == start_ns)
			*exe_fd = dup_of(h->exe_fd);
	}
	pthread_mutex_unlock(&e->lock);
	return *root_fd >= 0 || *exe_fd >= 0;
}

void exec_race_tick(struct exec_race *e, uint64_t now_ns)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	while (e->n && now_ns > back_at(e, e->n)->since_ns + EXEC_RACE_KEEP_NS)
		close_held(back_at(e, e->n--));
	pthread_mutex_unlock(&e->lock);
}

/* ---- the thread ---- */

/* Is it still the process that the event is of? stat's device is not always the kernel's (btrfs):
 * the namespace tells. */
static bool is_root_of(const struct maps_event *ev, int root_fd)
{
	char link[64], want[64];
	struct stat st;

	snprintf(want, sizeof(want), "mnt:[%u]", ev->mntns);
	return !fstat(root_fd, &st) && st.st_ino == ev->root_ino &&
	       !proc_readlink(ev->tgid, "ns/mnt", link, sizeof(link)) && !strcmp(link, want);
}

static void hold(struct exec_race *e, const struct maps_event *ev)
{
	struct held h = {.start_ns = ev->start_ns,
			 .since_ns = (uint64_t)clock_boot_ns(),
			 .tgid = ev->tgid,
			 .root = {.ino = ev->root_ino, .dev = ev->root_dev, .mntns = ev->mntns}};
	char path[64];

	h.root_fd = openin_root(ev->tgid);
	snprintf(path, sizeof(path), "/proc/%u/exe", ev->tgid);
	h.exe_fd = open(path, O_PATH | O_CLOEXEC);
	if (h.root_fd < 0 || !is_root_of(ev, h.root_fd))
		close_held(&h);
	else
		put(e, &h);
}

static int on_urgent(void *ctx, void *data, size_t len)
{
	const struct maps_event *ev = data;
	struct exec_race *e = ctx;

	if (len < sizeof(*ev))
		return 0;
	hold(e, ev);
	containers_read(e->containers,
			cgroups_path(e->cgroups, ev->cgroup_id, ev->cgroup1_id, ev->tgid));
	return 0;
}

static void *run(void *arg)
{
	struct exec_race *e = arg;
	struct sched_param param = {.sched_priority = 1};
	struct pollfd fds[2] = {{.fd = ring_buffer__epoll_fd(e->ring), .events = POLLIN},
				{.fd = e->stop_fd, .events = POLLIN}};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		log_debug("the thread for what is urgent is scheduled as any other");
	while (!fds[1].revents) {
		poll(fds, 2, -1);
		ring_buffer__consume(e->ring);
	}
	return NULL;
}

static int start_thread(struct exec_race *e)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	rc = pthread_create(&e->thread, NULL, run, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

struct exec_race *exec_race_start(int ring_fd, struct containers *containers)
{
	struct exec_race *e = mem_alloc(sizeof(*e));

	e->containers = containers;
	e->stop_fd = eventfd(0, EFD_CLOEXEC);
	e->ring = ring_buffer__new(ring_fd, on_urgent, e, NULL);
	e->cgroups = cgroups_new();
	pthread_mutex_init(&e->lock, NULL);
	if (e->ring && e->stop_fd >= 0 && !start_thread(e))
		return e;
	log_warn("no thread for what is urgent: programs of short containers may lack their names");
	ring_buffer__free(e->ring);
	cgroups_free(e->cgroups);
	if (e->stop_fd >= 0)
		close(e->stop_fd);
	free(e);
	return NULL;
}

void exec_race_stop(struct exec_race *e)
{
	if (!e)
		return;
	eventfd_write(e->stop_fd, 1);
	pthread_join(e->thread, NULL);
	while (e->n)
		close_held(back_at(e, e->n--));
	ring_buffer__free(e->ring);
	cgroups_free(e->cgroups);
	close(e->stop_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
