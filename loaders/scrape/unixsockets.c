/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unixsockets: Unix sockets of sockets.h. A line of /proc/net/unix is `NUM: REFS PROTOCOL FLAGS
 * TYPE STATE INODE PATH`, in hexadecimal digits but INODE, and PATH what it was bound to: a name
 * that a program chose. Only absolute paths are used: an abstract name cannot be distinguished from
 * another one with a NUL in it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "loaders/scrape/sockets.h"

#define ACCEPTS 0x10000 /* __SO_ACCEPTCON */

static bool line_read(const char *line, size_t len, struct listening *out)
{
	unsigned int flags, type;
	unsigned long long inode;
	char head[128];
	int at = 0;
	size_t n;

	n = len < sizeof(head) - 1 ? len : sizeof(head) - 1;
	memcpy(head, line, n);
	head[n] = '\0';
	if (sscanf(head, "%*x: %*x %*x %8x %4x %*x %llu %n", &flags, &type, &inode, &at) != 3 ||
	    !at || (size_t)at >= len)
		return false;
	n = len - (size_t)at;
	if (!(flags & ACCEPTS) || type != SOCK_STREAM || line[at] != '/' ||
	    n >= sizeof(out->path) || memchr(line + at, '\0', n))
		return false;
	*out = (struct listening){.inode = inode};
	memcpy(out->path, line + at, n);
	return true;
}

size_t sockets_parse_unix(const char *text, size_t len, struct listening *out, size_t max)
{
	const char *at = text, *end = text + len, *nl;
	size_t n = 0;

	for (; n < max && at < end && (nl = memchr(at, '\n', (size_t)(end - at))); at = nl + 1)
		n += line_read(at, (size_t)(nl - at), &out[n]);
	return n;
}
