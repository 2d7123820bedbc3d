/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

int textfile_read(int dirfd, const char *path, struct strbuf *out)
{
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char piece[8192];
	ssize_t n;

	strbuf_reset(out);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, piece, sizeof(piece))) > 0 && out->len < TEXTFILE_MAX)
		strbuf_add(out, piece, (size_t)n);
	if (n < 0) {
		n = -errno;
		strbuf_reset(out);
	}
	return n < 0 ? (int)n : 0;
}
