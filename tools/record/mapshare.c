/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/mapshare.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/sibling.h"
#include "tools/cli/helper.h"

#define READY_MS   60000
#define HURRY      (-10) /* nice, as a loader has it that starts sonde-maps itself */
#define AGAIN_MOST 10    /* one that cannot run is not restarted without end */

/* On a busy host mappings would arrive late, and the tables for their stacks would not be ready in
 * time.
 */
static void start_hurried(struct mapshare *m, char *const argv[], int fd)
{
	bool hurry = getpriority(PRIO_PROCESS, 0) == 0 && !setpriority(PRIO_PROCESS, 0, HURRY);
	struct err e = {0};

	if (helper_start_apart(argv, fd, &m->pid, &e))
		m->pid = 0;
	if (hurry)
		setpriority(PRIO_PROCESS, 0, 0);
}

/* m->pid is 0: it could not be. */
static void launch(struct mapshare *m)
{
	char path[PATH_MAX], fd[16];
	struct err e = {0};
	const char *const argv[] = {
		path,       "--fd",    fd,       "--store", m->store,
		"--socket", m->socket, "--args", m->args,   m->no_lines ? "--no-lines" : NULL,
		NULL};
	int pair[2];

	m->pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	m->fd = pair[0];
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	if (!sibling_find("sonde-maps", path, &e))
		start_hurried(m, (char *const *)argv, pair[1]);
	close(pair[1]);
}

static void wait_for_end(struct mapshare *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	while (m->pid > 0 && waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
		;
	m->pid = 0;
}

/* Its first message means that the socket accepts clients and everything is ready. */
static bool is_ready(struct mapshare *m)
{
	struct pollfd p = {.fd = m->fd, .events = POLLIN};
	int n;

	while ((n = poll(&p, 1, READY_MS)) < 0 && errno == EINTR)
		;
	return n == 1 && p.revents & POLLIN && !access(m->socket, F_OK);
}

void mapshare_start(struct mapshare *m, const char *store, const char *args, bool no_lines)
{
	*m = (struct mapshare){.fd = -1,
			       .store = store,
			       .args = args ? args : "masked",
			       .no_lines = no_lines,
			       .dir = "/tmp/sonde-record-XXXXXX"};
	if (!mkdtemp(m->dir)) {
		*m->dir = '\0';
		return;
	}
	snprintf(m->socket, sizeof(m->socket), "%s/maps", m->dir);
	launch(m);
	if (!m->pid || !is_ready(m))
		mapshare_end(m);
}

void mapshare_drain(struct mapshare *m)
{
	char bytes[4096];
	ssize_t n = recv(m->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	wait_for_end(m);
	if (m->again++ == AGAIN_MOST)
		return;
	fputs("sonde-maps ended; it is restarted\n", stderr);
	launch(m);
}

void mapshare_end(struct mapshare *m)
{
	wait_for_end(m);
	if (!*m->dir)
		return;
	unlink(m->socket);
	rmdir(m->dir);
	*m->dir = '\0';
}
