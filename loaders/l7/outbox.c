/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "schema/base/mem.h"

struct outbox_packet {
	struct outbox_packet *next;
	size_t size;
	unsigned char bytes[];
};

void outbox_put(struct outbox *o, const void *packet, size_t size)
{
	struct outbox_packet *m = mem_alloc(sizeof(*m) + size);

	m->size = size;
	memcpy(m->bytes, packet, size);
	*(o->last ? &o->last->next : &o->first) = m;
	o->last = m;
	o->n++;
	o->bytes += size;
}

static void first_drop(struct outbox *o)
{
	struct outbox_packet *m = o->first;

	o->first = m->next;
	if (!o->first)
		o->last = NULL;
	o->n--;
	o->bytes -= m->size;
	free(m);
}

int outbox_send(struct outbox *o, int fd)
{
	while (o->first) {
		const struct msghdr m = {.msg_iov =
						 &(struct iovec){o->first->bytes, o->first->size},
					 .msg_iovlen = 1};
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		first_drop(o);
	}
	return 0;
}

bool outbox_full(const struct outbox *o)
{
	return o->bytes >= OUTBOX_BYTES;
}

void outbox_release(struct outbox *o)
{
	while (o->first)
		first_drop(o);
}
