/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/mcp_calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

void mcp_calls_init(struct mcp_calls *c)
{
	*c = (struct mcp_calls){.first = NULL};
	pthread_mutex_init(&c->lock, NULL);
}

void mcp_calls_release(struct mcp_calls *c)
{
	pthread_mutex_destroy(&c->lock);
}

static bool watch(int epoll_fd, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

int mcp_calls_enter(struct mcp_calls *c, int stop_fd, const char *session, const char *id,
		    struct mcp_call *x)
{
	cleanup_fd int cancel = eventfd(0, EFD_CLOEXEC), end = epoll_create1(EPOLL_CLOEXEC);

	if (cancel < 0 || end < 0 || !watch(end, cancel) || !watch(end, stop_fd))
		return -errno;
	*x = (struct mcp_call){.session = session, .id = id};
	x->cancel_fd = take_fd(&cancel);
	x->end_fd = take_fd(&end);
	pthread_mutex_lock(&c->lock);
	x->next = c->first;
	c->first = x;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

bool mcp_calls_leave(struct mcp_calls *c, struct mcp_call *x)
{
	struct mcp_call **at = &c->first;

	pthread_mutex_lock(&c->lock);
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	pthread_mutex_unlock(&c->lock);
	close(x->cancel_fd);
	close(x->end_fd);
	return x->cancelled;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool mcp_calls_cancel(struct mcp_calls *c, const char *session, const char *id)
{
	struct mcp_call *found = NULL;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	for (struct mcp_call *x = c->first; x; x = x->next)
		if (same(x->session, session) && same(x->id, id)) {
			found = x;
			n++;
		}
	if (n == 1) {
		found->cancelled = true;
		eventfd_write(found->cancel_fd, 1);
	}
	pthread_mutex_unlock(&c->lock);
	return n == 1;
}

bool mcp_session_make(char text[static MCP_SESSION])
{
	unsigned char random[(MCP_SESSION - 1) / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	return true;
}
