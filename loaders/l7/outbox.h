/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox: packets that a SOCK_SEQPACKET socket does not take yet, in order. At OUTBOX_BYTES it is
 * full: the caller waits until the socket takes some.
 */
#ifndef SONDE_L7_OUTBOX_H
#define SONDE_L7_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#define OUTBOX_BYTES (16u << 20)

struct outbox {
	struct outbox_packet *first, *last;
	size_t n, bytes;
};

void outbox_put(struct outbox *o, const void *packet, size_t size);
/* Sends what the socket takes without waiting. 0, or -errno: the socket is closed. */
int outbox_send(struct outbox *o, int fd);
bool outbox_full(const struct outbox *o);
void outbox_release(struct outbox *o);

#endif
