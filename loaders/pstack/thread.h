/* SPDX-License-Identifier: Apache-2.0 */
/* thread: what is shown of one waiting thread: which one, why, since when, and its stack. */
#ifndef SONDE_PSTACK_THREAD_H
#define SONDE_PSTACK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/pstack/names.h"
#include "loaders/pstack/snapshot.h"

#define THREAD_WATCHES 8 /* sockets that are shown of a thread that waits for many */

struct thread {
	uint32_t pid, tid;
	char *process, *name, *container; /* container NULL: in none, or its name is not known */
	const char *state;   /* "sleeping", "uninterruptible", "stopped", "traced", "ready",
				"running", ... */
	const char *reason;  /* "poll"; NULL: it does not wait */
	const char *syscall; /* NULL: in none */
	char *wchan;         /* NULL: not known */
	char *on; /* the socket that it sleeps on: "10.0.0.5:5432", "port 80", "/run/x.sock"; NULL:
		     on none that is known */
	char *peer; /* the process at the other end: "postgres 812"; NULL: unknown */
	struct {
		char *on, *peer;
	} watches[THREAD_WATCHES];      /* the same of a thread in epoll_wait, poll or select: its
					   sockets, by descriptor */
	size_t n_watches, more_watches; /* more_watches: that are not shown */
	int64_t since_ns;               /* boot clock; 0: not known */
	int64_t blocked_ns;             /* -1: not known */
	const char *gil; /* "holds" or "waits" of CPython's; NULL: neither, or not known */
	bool moved;      /* it ran while it was read: its user stack may be torn, and is left out */
	const char *end; /* why the user part ends; NULL: it is complete, or absent */
	struct named_stack stack;
};

/* All but stack, end and moved. `p` may be NULL. */
void thread_fill(struct thread *t, const struct pstack_record *r, const struct hostmaps_process *p,
		 uint64_t now_ns);
/* What it waits for in epoll_wait, poll or select, if it does. */
void thread_watches(struct thread *t, const struct pstack_record *r, const struct sockets *all);
void thread_release(struct thread *t);
/* Asleep, stopped or waiting for something: not ready, not running, not a corpse. */
bool thread_is_blocked(const struct pstack_record *r);

#endif
