/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's content does not matter here (the process that wants its tables): everything new is
 * published. */
#include "loaders/maps/publish/wanted.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "schema/base/mem.h"

struct wanted {
	struct ring_buffer *ring;
};

static int on_one(void *ctx, void *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return 0;
}

struct wanted *wanted_open(int ring_fd, int epoll_fd)
{
	struct wanted *w = mem_alloc(sizeof(*w));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	w->ring = ring_fd < 0 ? NULL : ring_buffer__new(ring_fd, on_one, w, NULL);
	if (w->ring && !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ring_buffer__epoll_fd(w->ring), &ev))
		return w;
	wanted_close(w);
	return NULL;
}

void wanted_take(struct wanted *w)
{
	ring_buffer__consume(w->ring);
}

void wanted_close(struct wanted *w)
{
	if (!w)
		return;
	ring_buffer__free(w->ring);
	free(w);
}
