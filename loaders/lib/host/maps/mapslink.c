/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/maps/mapslink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"

extern char **environ;

char *maps_link_program(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *slash;

	if (n < 0)
		return mem_strdup("sonde-maps");
	path[n] = 0;
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "sonde-maps");
	return mem_strdup(path);
}

#define CHILD_SOCKET 3
#define CHILD_TABLES 4 /* and those above, MP_TABLES_N in all */

/* Moves a descriptor away from the numbers that the child's will get: dup2 onto itself would leave
 * it close-on-exec. */
static int out_of_the_way(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CHILD_TABLES + MP_TABLES_N);
}

int maps_link_start(const char *program, char *store_dir, char *args_policy, bool no_lines,
		    const int tables[MP_TABLES_N], pid_t *child, int *fd, struct err *e)
{
	char *argv[12] = {"sonde-maps", "--fd", "3"};
	int high[MP_TABLES_N];
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	int pair[2], rc, n = 3;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket: %s",
			       strerror(errno));
	if (store_dir) {
		argv[n++] = "--store";
		argv[n++] = store_dir;
	}
	if (args_policy) {
		argv[n++] = "--args";
		argv[n++] = args_policy;
	}
	if (no_lines)
		argv[n++] = "--no-lines";
	if (tables[0] >= 0) {
		argv[n++] = "--tables-fd";
		argv[n++] = "4";
	}
	high[0] = out_of_the_way(pair[1]);
	close(pair[1]);
	pair[1] = high[0];
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, pair[1], CHILD_SOCKET);
	for (int i = 0; i < MP_TABLES_N; i++) {
		high[i] = out_of_the_way(tables[i]);
		if (high[i] >= 0)
			posix_spawn_file_actions_adddup2(&fa, high[i], CHILD_TABLES + i);
	}
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGTERM);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(child, program, &fa, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	close(pair[1]);
	for (int i = 0; i < MP_TABLES_N; i++)
		if (high[i] >= 0)
			close(high[i]);
	if (rc) {
		close(pair[0]);
		*child = 0;
		return err_set(e, -rc, EXIT_RUNTIME, "cannot start %s: %s", program, strerror(rc));
	}
	*fd = pair[0];
	return 0;
}

int maps_link_connect(const char *path, int *out, struct err *e)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(e, -ENAMETOOLONG, EXIT_USAGE, "the socket's path is too long: %s",
			       path);
	strcpy(addr.sun_path, path);
	if (fd < 0 || connect(fd, (void *)&addr, sizeof(addr))) {
		int code = -errno;

		err_set(e, code, EXIT_RUNTIME, "cannot reach sonde-maps at %s: %s", path,
			strerror(-code));
		err_fix(e, "start it: sonde-maps --socket %s", path);
		return code;
	}
	*out = take_fd(&fd);
	return 0;
}

int maps_link_receive(int sock, void *packet, size_t cap, size_t *len, int fds[MP_FDS_MAX])
{
	const ssize_t n = fdpass_take(sock, packet, cap, fds, MP_FDS_MAX, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n == -EMSGSIZE ? -EPROTO : -EPIPE;
	*len = (size_t)n;
	return 1;
}

void maps_link_end(pid_t child)
{
	if (child <= 0)
		return;
	for (int i = 0; i < 200; i++) {
		if (waitpid(child, NULL, WNOHANG) == child)
			return;
		poll(NULL, 0, 5);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
