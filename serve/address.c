/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

#define UNIX    "unix:"
#define BACKLOG 64

static int bad(const char *text, const char *why, struct err *e)
{
	err_set(e, -EINVAL, EXIT_USAGE, "cannot listen at '%.100s': %s", text, why);
	err_fix(e, "sonde serve --listen " ADDRESS_DEFAULT
		   ", --listen '[::1]:7766', or --listen unix:/run/sonde/serve.sock");
	return -EINVAL;
}

static int unix_parse(const char *text, struct address *a, struct err *e)
{
	const char *path = text + strlen(UNIX);

	if (!*path || strlen(path) >= sizeof(a->unix_.sun_path))
		return bad(text, "after unix: a path of 1 to 107 characters is needed", e);
	a->unix_.sun_family = AF_UNIX;
	strcpy(a->unix_.sun_path, path);
	a->len = sizeof(a->unix_);
	a->loopback = true;
	snprintf(a->shown, sizeof(a->shown), "%s", text);
	return 0;
}

static void show(struct address *a)
{
	char text[INET6_ADDRSTRLEN];
	const struct sockaddr_in *v4 = (const void *)&a->storage;
	const struct sockaddr_in6 *v6 = (const void *)&a->storage;

	if (a->any.sa_family == AF_INET)
		snprintf(a->shown, sizeof(a->shown), "http://%s:%u/",
			 inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)),
			 ntohs(v4->sin_port));
	else
		snprintf(a->shown, sizeof(a->shown), "http://[%s]:%u/",
			 inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)),
			 ntohs(v6->sin6_port));
}

static int port_parse(const char *text, uint16_t *port)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > 65535)
		return -EINVAL;
	*port = htons((uint16_t)n);
	return 0;
}

int address_parse(const char *text, struct address *a, struct err *e)
{
	struct sockaddr_in *v4 = (void *)&a->storage;
	struct sockaddr_in6 *v6 = (void *)&a->storage;
	const char *colon = strrchr(text, ':'), *from = text;
	char host[64] = "127.0.0.1";
	uint16_t port;
	size_t len;

	*a = (struct address){0};
	if (!strncmp(text, UNIX, strlen(UNIX)))
		return unix_parse(text, a, e);
	if (!colon || port_parse(colon + 1, &port))
		return bad(text, "after the last colon a port from 0 to 65535 is needed", e);
	len = (size_t)(colon - text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		from++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return bad(text, "this is not an address", e);
	if (len) {
		memcpy(host, from, len);
		host[len] = '\0';
	}
	if (!strcmp(host, "localhost"))
		strcpy(host, "127.0.0.1");
	if (from == text && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		a->len = sizeof(*v4);
		a->loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	} else if (from != text && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		a->len = sizeof(*v6);
		a->loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
	} else {
		return bad(
			text,
			"this is not an address (IPv4 or IPv6 in numbers, IPv6 in brackets, or localhost)",
			e);
	}
	show(a);
	return 0;
}

/* A leftover socket file of a killed server. */
static bool is_left_over(const struct address *a)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	return fd >= 0 && !lstat(a->unix_.sun_path, &st) && S_ISSOCK(st.st_mode) &&
	       connect(fd, &a->any, a->len) < 0 && errno == ECONNREFUSED;
}

static int bind_it(int fd, const struct address *a)
{
	mode_t mask;
	int rc;

	if (a->any.sa_family != AF_UNIX)
		return bind(fd, &a->any, a->len) < 0 ? -errno : 0;
	if (is_left_over(a))
		unlink(a->unix_.sun_path);
	mask = umask(0117); /* owner and group may connect */
	rc = bind(fd, &a->any, a->len) < 0 ? -errno : 0;
	umask(mask);
	return rc;
}

int address_listen(struct address *a, struct err *e)
{
	cleanup_fd int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;
	int rc = fd < 0 ? -errno : 0;

	if (!rc && a->any.sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (!rc)
		rc = bind_it(fd, a);
	if (!rc && listen(fd, BACKLOG) < 0)
		rc = -errno;
	if (rc) {
		err_set(e, rc, rc == -EACCES || rc == -EPERM ? EXIT_PERMISSION : EXIT_RUNTIME,
			"cannot listen at %s: %s", a->shown, strerror(-rc));
		if (rc == -EADDRINUSE)
			err_fix(e,
				"another program listens there, perhaps another sonde serve: choose another address with --listen");
		else if (rc == -EADDRNOTAVAIL)
			err_fix(e, "choose an address of this host: ip address");
		return rc;
	}
	if (a->any.sa_family != AF_UNIX) {
		getsockname(fd, &a->any, &a->len);
		show(a);
	}
	return take_fd(&fd);
}

void address_leave(const struct address *a)
{
	if (a->any.sa_family == AF_UNIX)
		unlink(a->unix_.sun_path);
}
