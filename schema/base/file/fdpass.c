/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/file/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char buf[CMSG_SPACE(FDPASS_MOST * sizeof(int))];
	struct cmsghdr align;
};

int fdpass_send(int sock, const void *data, size_t size, const int *fds, size_t n, int flags)
{
	union control control = {0};
	struct iovec v = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	ssize_t sent;

	if (n > FDPASS_MOST)
		return -E2BIG;
	if (n) {
		h.msg_control = control.buf;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		CMSG_FIRSTHDR(&h)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&h)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&h)->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, n * sizeof(int));
	}
	do
		sent = sendmsg(sock, &h, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == size ? 0 : -EPIPE;
}

static void fds_of(struct msghdr *h, int *fds, size_t most)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		const size_t got = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ?
					   (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) :
					   0;

		for (size_t i = 0; i < got; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (n < most)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
}

ssize_t fdpass_take(int sock, void *data, size_t size, int *fds, size_t most, int flags)
{
	union control control = {0};
	struct iovec v = {.iov_base = data, .iov_len = size};
	struct msghdr h = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};
	ssize_t n;

	for (size_t i = 0; i < most; i++)
		fds[i] = -1;
	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR && !(flags & MSG_DONTWAIT));
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	fds_of(&h, fds, most);
	return h.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}
