/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"

int connections_init(struct connections *c)
{
	*c = (struct connections){.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	pthread_mutex_init(&c->lock, NULL);
	return c->wake_fd < 0 ? -errno : 0;
}

void connections_release(struct connections *c)
{
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	pthread_mutex_destroy(&c->lock);
}

struct connection *connections_add(struct connections *c, int fd)
{
	struct connection *x = mem_alloc(sizeof(*x));
	bool first;

	pthread_mutex_lock(&c->lock);
	first = !c->first;
	*x = (struct connection){.next = c->first, .fd = fd, .owes_since_ns = clock_boot_ns()};
	c->first = x;
	pthread_mutex_unlock(&c->lock);
	if (first)
		eventfd_write(c->wake_fd, 1);
	return x;
}

void connections_remove(struct connections *c, struct connection *x)
{
	pthread_mutex_lock(&c->lock);
	for (struct connection **at = &c->first; *at; at = &(*at)->next)
		if (*at == x) {
			*at = x->next;
			break;
		}
	pthread_mutex_unlock(&c->lock);
	free(x);
}

void connections_mark(struct connections *c, struct connection *x, bool owes)
{
	pthread_mutex_lock(&c->lock);
	x->owes_since_ns = owes ? clock_boot_ns() : 0;
	pthread_mutex_unlock(&c->lock);
}

bool connections_check(struct connections *c)
{
	int64_t since_ns = clock_boot_ns() - CONNECTIONS_HEAD_S * NSEC_PER_SEC;
	bool any;

	pthread_mutex_lock(&c->lock);
	any = c->first != NULL;
	for (struct connection *x = c->first; x; x = x->next)
		if (x->owes_since_ns && x->owes_since_ns < since_ns)
			shutdown(x->fd, SHUT_RDWR);
	pthread_mutex_unlock(&c->lock);
	return any;
}
