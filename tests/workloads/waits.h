/* SPDX-License-Identifier: Apache-2.0 */
/* waits: the kinds of wait (waitkinds.c) as waits.c uses them. */
#ifndef SONDE_WORKLOADS_WAITS_H
#define SONDE_WORKLOADS_WAITS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/types.h>

#include "work.h"

struct waiter;

struct kind {
	const char *name;
	int (*init)(struct waiter *w);     /* NULL: nothing to make; != 0: cannot be had here */
	void (*wait)(struct waiter *w);    /* one wait */
	void (*partner)(struct waiter *w); /* ends it, called when the waiter is asleep and its time
					      is over; NULL: ends itself */
	void *(*run)(void *w);             /* instead of waits_waiter; NULL */
};
extern const struct kind KINDS[]; /* up to a name NULL */

struct waiter {
	const struct kind *kind;
	char name[16];
	volatile pid_t tid;
	pthread_t thread, partner;
	sem_t ask, go;
	bool stand;
	int count;
	uint64_t nap_ns;

	int fd[2], extra; /* the kind's own */
	volatile uint32_t word;
	char *page;
	uint64_t turn;

	volatile uint64_t since_ns;
	uint64_t way_count[2], way_ns[2], max_ns, wall_ns, cpu_ns, ran_ns, delay_ns, switches,
		preempted;
};

void *waits_waiter(void *w);
void waits_nap(uint64_t ns);
bool waits_asleep(pid_t tid, const char *states);

#endif
