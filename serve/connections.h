/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connections: those that are open, and since when each one owes the head of a request. The library
 * closes one that sends nothing for a while; one that sends a byte now and then it would keep for
 * ever. Whoever takes longer than CONNECTIONS_HEAD_S over a head is shut down by the one thread
 * that calls connections_check().
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
/* Before its descriptor is closed. */
void connections_remove(struct connections *c, struct connection *x);
/* owes: from now on a head is waited for; else it is there. */
void connections_mark(struct connections *c, struct connection *x, bool owes);
/* Shuts down those that take too long. False: none is open. */
bool connections_check(struct connections *c);

#endif
