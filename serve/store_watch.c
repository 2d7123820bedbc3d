/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/store_watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

#define EVENTS (IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_TO)

/* A descriptor that becomes readable on writes; -1: there are no notifications. For a file, its
 * folder is watched, because new data goes to its log first. */
static int notice(const char *path)
{
	cleanup_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char folder[PATH_MAX];
	struct stat st;
	char *slash;

	if (fd < 0 || stat(path, &st) < 0)
		return -1;
	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!S_ISDIR(st.st_mode)) {
		if (slash)
			slash[slash == folder] = '\0';
		else
			snprintf(folder, sizeof(folder), ".");
	}
	return inotify_add_watch(fd, folder, EVENTS) < 0 ? -1 : take_fd(&fd);
}

static void drain(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

static bool state(struct store_watch *w, unsigned *lookers)
{
	bool closed;

	pthread_mutex_lock(&w->lock);
	*lookers = w->lookers;
	closed = w->closed;
	pthread_mutex_unlock(&w->lock);
	return !closed;
}

static void tell(struct store_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->changes++;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* One round, while there are viewers: until something was written, or viewers came or went. */
static void look(struct store_watch *w, int *fd)
{
	struct pollfd fds[] = {{.fd = w->wake_fd, .events = POLLIN}, {.fd = *fd, .events = POLLIN}};
	int n = poll(fds, *fd < 0 ? 1 : 2, *fd < 0 ? STORE_WATCH_BLIND_S * 1000 : -1);

	if (fds[0].revents)
		return;
	if (*fd >= 0 && !fds[1].revents)
		return;
	if (*fd < 0 && n < 0)
		return;
	if (*fd >= 0)
		drain(*fd); /* later writes are reported in the next round */
	tell(w);
	poll(fds, 1, STORE_WATCH_STEP_MS);
}

static void *run(void *cls)
{
	struct store_watch *w = cls;
	unsigned lookers;
	eventfd_t ignored;
	int fd = -1;

	while (state(w, &lookers)) {
		if (lookers && fd < 0) {
			fd = notice(w->path);
			if (fd >= 0)
				tell(w); /* earlier writes */
		}
		if (!lookers && fd >= 0) {
			close(fd);
			fd = -1;
		}
		if (lookers)
			look(w, &fd);
		else
			poll(&(struct pollfd){.fd = w->wake_fd, .events = POLLIN}, 1, -1);
		eventfd_read(w->wake_fd, &ignored);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

int store_watch_init(struct store_watch *w, const char *path)
{
	pthread_condattr_t attr;
	int rc;

	*w = (struct store_watch){.path = path, .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	rc = !path || w->wake_fd < 0 ? -EINVAL : -pthread_create(&w->thread, NULL, run, w);
	w->running = !rc;
	return path ? rc : 0;
}

void store_watch_close(struct store_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	eventfd_write(w->wake_fd, 1);
}

void store_watch_release(struct store_watch *w)
{
	store_watch_close(w);
	if (w->running)
		pthread_join(w->thread, NULL);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

static void lookers_add(struct store_watch *w, int n)
{
	pthread_mutex_lock(&w->lock);
	w->lookers += (unsigned)n;
	pthread_mutex_unlock(&w->lock);
	eventfd_write(w->wake_fd, 1);
}

void store_watch_enter(struct store_watch *w)
{
	lookers_add(w, 1);
}

void store_watch_leave(struct store_watch *w)
{
	lookers_add(w, -1);
}

enum store_watch_said store_watch_wait(struct store_watch *w, uint64_t *seen, unsigned seconds)
{
	enum store_watch_said said;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&w->lock);
	while (!w->closed && w->changes == *seen)
		if (pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT)
			break;
	said = w->closed           ? STORE_WATCH_CLOSED :
	       w->changes != *seen ? STORE_WATCH_CHANGED :
				     STORE_WATCH_QUIET;
	*seen = w->changes;
	pthread_mutex_unlock(&w->lock);
	return said;
}
