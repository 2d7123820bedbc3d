/* SPDX-License-Identifier: Apache-2.0 */
/* fdpass: packets of a unix socket, which carry descriptors. */
#ifndef SONDE_BASE_FDPASS_H
#define SONDE_BASE_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

#define FDPASS_MOST 16

/* `fds`: at most FDPASS_MOST, which stay the caller's; `flags`: MSG_DONTWAIT, or 0. 0: all of it
 * was sent; else -errno. */
int fdpass_send(int sock, const void *data, size_t size, const int *fds, size_t n, int flags);

/* Bytes of the packet, 0 when no more will come, or -errno: -EAGAIN also where a signal came and
 * MSG_DONTWAIT is in `flags`; -EMSGSIZE: it is longer than `size`. `fds`: `most` of them, at most
 * FDPASS_MOST, the caller's from now on, close-on-exec; -1 where none came. More than that are
 * closed. */
ssize_t fdpass_take(int sock, void *data, size_t size, int *fds, size_t most, int flags);

#endif
