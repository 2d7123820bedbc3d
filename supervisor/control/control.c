/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"

#define ANSWER_WAIT_S 1

int control_open(struct control *c, const char *store, struct err *e)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_fd int fd = -1;
	struct stat st;
	mode_t old;
	int rc;

	c->listen_fd = -1;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		c->client[i].fd = -1;
	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control.sock", store) >=
	    sizeof(addr.sun_path)) {
		err_set(e, -ENAMETOOLONG, EXIT_USAGE,
			"the store's path is too long for a socket in it: %s", store);
		err_fix(e, "use a path of fewer than 90 characters: --store DIR");
		return -ENAMETOOLONG;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a socket: %s",
			       strerror(errno));
	(void)unlink(addr.sun_path); /* we hold the store's supervisor lock: no other sonded listens
					there */
	old = umask(0117);
	rc = bind(fd, (void *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(old);
	if (!rc && stat(store, &st) == 0)
		rc = lchown(addr.sun_path, (uid_t)-1, st.st_gid) < 0 && errno != EPERM ? -errno : 0;
	if (!rc && listen(fd, 8) < 0)
		rc = -errno;
	if (rc)
		return err_set(e, rc,
			       rc == -EACCES || rc == -EROFS ? EXIT_PERMISSION : EXIT_RUNTIME,
			       "cannot listen at %s: %s", addr.sun_path, strerror(-rc));
	memcpy(c->path, addr.sun_path, sizeof(c->path));
	c->listen_fd = take_fd(&fd);
	return 0;
}

static void drop(struct control_client *x)
{
	if (x->fd >= 0)
		close(x->fd);
	x->fd = -1;
	x->n = 0;
}

void control_close(struct control *c)
{
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		drop(&c->client[i]);
	if (c->listen_fd >= 0) {
		(void)unlink(c->path);
		close(c->listen_fd);
	}
	c->listen_fd = -1;
}

size_t control_fds(const struct control *c, struct pollfd *out)
{
	size_t n = 0;

	out[n++] = (struct pollfd){.fd = c->listen_fd, .events = POLLIN};
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		if (c->client[i].fd >= 0)
			out[n++] = (struct pollfd){.fd = c->client[i].fd, .events = POLLIN};
	return n;
}

/* A free one, or that of who has been here longest: all that have said something were answered
 * before one more is let in. */
static struct control_client *place_for_one(struct control *c)
{
	struct control_client *oldest = &c->client[0];

	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->client[i].fd < 0)
			return &c->client[i];
		if (c->client[i].came < oldest->came)
			oldest = &c->client[i];
	}
	return oldest;
}

static void accept_one(struct control *c)
{
	struct timeval wait = {.tv_sec = ANSWER_WAIT_S};
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t len = sizeof(who);
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct control_client *x;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	x = place_for_one(c);
	drop(x);
	x->fd = fd;
	x->came = ++c->came;
	x->trusted = who.uid == 0 || who.uid == geteuid();
}

static void reply(struct control *c, struct control_client *x)
{
	json_t *request = json_loadb(x->request, x->n, 0, NULL), *answer;
	char *text;

	answer = json_is_object(request) ? c->answer(c->ctx, request, x->trusted) :
					   json_pack("{s:s, s:i}", "error",
						     "that was no JSON object", "exit", EXIT_USAGE);
	text = json_dumps(answer, JSON_COMPACT);
	if (text && send(x->fd, text, strlen(text), MSG_NOSIGNAL) >= 0)
		(void)!send(x->fd, "\n", 1, MSG_NOSIGNAL);
	free(text);
	json_decref(answer);
	json_decref(request);
}

static void read_one(struct control *c, struct control_client *x)
{
	ssize_t n = recv(x->fd, x->request + x->n, sizeof(x->request) - x->n, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	x->n += n > 0 ? (size_t)n : 0;
	if (n > 0 && !memchr(x->request, '\n', x->n) && x->n < sizeof(x->request))
		return;
	if (x->n)
		reply(c, x);
	drop(x);
}

void control_serve(struct control *c, const struct pollfd *polled)
{
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		if (c->client[i].fd >= 0)
			read_one(c, &c->client[i]);
	if (polled[0].revents)
		accept_one(c);
}
