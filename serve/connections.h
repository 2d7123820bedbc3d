/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connections: the open connections, with the time since which each one owes the head of a request.
 * The library closes a connection that sends nothing for a while, but one that sends a byte now and
 * then would stay forever. The one thread that calls connections_check() shuts down any that take
 * longer than CONNECTIONS_HEAD_S for a head.
 */
#ifndef SONDE_SERVE_CONNECTIONS_H
#define SONDE_SERVE_CONNECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CONNECTIONS_HEAD_S 5

struct connection {
	struct connection *next;
	int fd;
	int64_t owes_since_ns; /* 0: its request is being answered */
};

struct connections {
	pthread_mutex_t lock;
	struct connection *first;
	int wake_fd; /* eventfd: written when the first one opens */
};

int connections_init(struct connections *c);
void connections_release(struct connections *c);
struct connection *connections_add(struct connections *c, int fd);
/* Call before its descriptor is closed. */
void connections_remove(struct connections *c, struct connection *x);
/* owes: a head is expected from now on; otherwise it has arrived. */
void connections_mark(struct connections *c, struct connection *x, bool owes);
/* Shuts down those that take too long. False: no connection is open. */
bool connections_check(struct connections *c);

#endif
