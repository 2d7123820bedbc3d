/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox: messages for a socket of packets that does not take them now. In order; OUTBOX_BYTES of
 * them, then who says more is to wait.
 */
#ifndef SONDE_L7_OUTBOX_H
#define SONDE_L7_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#define OUTBOX_BYTES (16u << 20)

struct outbox {
	struct outbox_message *first, *last;
	size_t n, bytes;
};

void outbox_put(struct outbox *o, const void *message, size_t size);
/* What the socket takes without waiting. 0, or -errno: it is gone. */
int outbox_send(struct outbox *o, int fd);
bool outbox_full(const struct outbox *o);
void outbox_release(struct outbox *o);

#endif
