/* SPDX-License-Identifier: Apache-2.0 */
/* unixconnect: a connection to a program's Unix socket, by its own root; see sockets.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "loaders/lib/host/proc/openin.h"
#include "loaders/scrape/sockets.h"

/* Connects to the socket itself, below the process's own root, even through links. */
static int socket_at(uint32_t pid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int root = openin_root(pid), fd;
	struct stat st;

	if (root < 0)
		return root;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISSOCK(st.st_mode))) {
		close(fd);
		fd = -ENOTSOCK;
	}
	return fd;
}

int sockets_connect(uint32_t pid, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int at = socket_at(pid, path), fd, err = 0;

	if (at < 0)
		return at;
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", at);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0); /* one whose queue is full is not waited for */
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) || fcntl(fd, F_SETFL, 0))
		err = -errno;
	close(at);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}
