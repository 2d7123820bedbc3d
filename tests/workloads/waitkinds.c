/* SPDX-License-Identifier: Apache-2.0 */
/* waitkinds: each kind of wait that waits.c knows: how it is made, what the waiter does, what its
 * partner does. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waits.h"

#define PAGE       4096
#define DISK_BYTES (8 << 20)

static void kick(struct waiter *w)
{
	if (write(w->fd[1], "x", 1) != 1)
		abort();
}

/* --- sleep: by itself --- */

static void sleep_wait(struct waiter *w)
{
	if (w->stand)
		waits_nap(1000000000000u);
	waits_nap(w->nap_ns);
}

/* --- futex --- */

static void futex_wait(struct waiter *w)
{
	while (!__atomic_load_n(&w->word, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	__atomic_store_n(&w->word, 0, __ATOMIC_RELEASE);
}

static void futex_wake(struct waiter *w)
{
	__atomic_store_n(&w->word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- pipe, and the same one polled --- */

static int pipe_init(struct waiter *w)
{
	return pipe(w->fd);
}

static void pipe_wait(struct waiter *w)
{
	char c;

	while (read(w->fd[0], &c, 1) != 1)
		;
}

static int poll_init(struct waiter *w)
{
	struct epoll_event ev = {.events = EPOLLIN};

	w->extra = epoll_create1(0);
	return pipe(w->fd) || epoll_ctl(w->extra, EPOLL_CTL_ADD, w->fd[0], &ev);
}

static void poll_wait(struct waiter *w)
{
	struct epoll_event ev;
	char c;

	while (epoll_wait(w->extra, &ev, 1, -1) != 1)
		;
	if (read(w->fd[0], &c, 1) != 1)
		abort();
}

/* --- network, over loopback --- */

static int listener(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(fd, (struct sockaddr *)at, len) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		return -1;
	return fd;
}

static int recv_init(struct waiter *w)
{
	struct sockaddr_in at;
	int fd = listener(&at);

	w->fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(w->fd[1], (struct sockaddr *)&at, sizeof(at)))
		return -1;
	w->fd[0] = accept(fd, NULL, NULL);
	return close(fd);
}

static void recv_wait(struct waiter *w)
{
	char c;

	while (recv(w->fd[0], &c, 1, 0) != 1)
		;
}

static int accept_init(struct waiter *w)
{
	struct sockaddr_in at;

	w->fd[0] = listener(&at);
	w->extra = ntohs(at.sin_port);
	return w->fd[0] < 0;
}

static void accept_wait(struct waiter *w)
{
	int fd = accept(w->fd[0], NULL, NULL);

	if (fd >= 0)
		close(fd);
}

static void accept_wake(struct waiter *w)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)w->extra)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
		abort();
	close(fd);
}

/* --- disk --- */

static int disk_init(struct waiter *w)
{
	char name[] = "waits-XXXXXX";

	w->extra = mkstemp(name);
	if (w->extra < 0 || posix_memalign((void **)&w->page, PAGE, 1 << 16))
		return -1;
	memset(w->page, 7, 1 << 16);
	for (int i = 0; i < DISK_BYTES >> 16; i++)
		if (write(w->extra, w->page, 1 << 16) != 1 << 16)
			return -1;
	fsync(w->extra);
	w->fd[0] = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
	unlink(name);
	return w->fd[0] < 0;
}

static void disk_wait(struct waiter *w)
{
	off_t at = (off_t)(w->turn++ * 7919 * PAGE % DISK_BYTES);

	if (pread(w->fd[0], w->page, PAGE, at) != PAGE)
		abort();
}

/* --- a page that comes late --- */

static int fault_init(struct waiter *w)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range.len = PAGE, .mode = UFFDIO_REGISTER_MODE_MISSING};

	w->extra = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	w->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uint64_t)(uintptr_t)w->page;
	return w->extra < 0 || w->page == MAP_FAILED || ioctl(w->extra, UFFDIO_API, &api) ||
	       ioctl(w->extra, UFFDIO_REGISTER, &reg);
}

static void fault_wait(struct waiter *w)
{
	*(volatile char *)w->page = 1;
	madvise(w->page, PAGE, MADV_DONTNEED);
}

static void fault_fill(struct waiter *w)
{
	static char zeros[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = {.dst = (uint64_t)(uintptr_t)w->page,
				   .src = (uint64_t)(uintptr_t)zeros,
				   .len = PAGE};
	struct uffd_msg msg;

	while (read(w->extra, &msg, sizeof(msg)) != sizeof(msg))
		poll(&(struct pollfd){.fd = w->extra, .events = POLLIN}, 1, -1);
	if (ioctl(w->extra, UFFDIO_COPY, &copy) && errno != EEXIST)
		abort();
}

/* --- stop: a child that stops itself, continued by us. Its account is in memory that both have.
 * --- */

static void stop_wait(struct waiter *w)
{
	(void)w;
	raise(SIGSTOP);
}

static void *stop_run(void *arg)
{
	struct waiter *w = arg, *child = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	*child = *w;
	prctl(PR_SET_NAME, "partner");
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		waits_waiter(child);
		_exit(0);
	}
	while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
		w->since_ns = child->since_ns;
		w->tid = pid;
		if (w->stand)
			sem_wait(&w->go);
		waits_nap(w->nap_ns);
		kill(pid, SIGCONT);
	}
	memcpy(w->way_count, child->way_count, sizeof(w->way_count));
	memcpy(w->way_ns, child->way_ns, sizeof(w->way_ns));
	w->tid = pid;
	w->max_ns = child->max_ns;
	w->wall_ns = child->wall_ns;
	w->cpu_ns = child->cpu_ns;
	w->ran_ns = child->ran_ns;
	w->delay_ns = child->delay_ns;
	w->switches = child->switches;
	w->preempted = child->preempted;
	return NULL;
}

const struct kind KINDS[] = {
	{"sleep", NULL, sleep_wait, NULL, NULL},
	{"futex", NULL, futex_wait, futex_wake, NULL},
	{"pipe", pipe_init, pipe_wait, kick, NULL},
	{"poll", poll_init, poll_wait, kick, NULL},
	{"recv", recv_init, recv_wait, kick, NULL},
	{"accept", accept_init, accept_wait, accept_wake, NULL},
	{"disk", disk_init, disk_wait, NULL, NULL},
	{"fault", fault_init, fault_wait, fault_fill, NULL},
	{"stop", NULL, stop_wait, NULL, stop_run},
	{NULL, NULL, NULL, NULL, NULL},
};
