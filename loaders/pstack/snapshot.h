/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: all threads at one moment, and their sockets, by the iterators of probes/pstack.bpf.c.
 */
#ifndef SONDE_PSTACK_SNAPSHOT_H
#define SONDE_PSTACK_SNAPSHOT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/pstack.h"
#include "schema/base/err.h"

struct check;
struct snapshots;

/* Its programs, loaded and attached as snapshots_open and sockets_read do, as items of `--check`.
 */
void snapshots_check(struct check *c);
/* only_tgid: this process alone; 0: all. */
int snapshots_open(uint32_t only_tgid, struct snapshots **out, struct err *e);
void snapshots_close(struct snapshots *s); /* NULL is fine */

struct snapshot {
	struct pstack_record *threads;
	size_t n;
	uint64_t time_ns; /* boot clock, when it was taken */
};
/* The scheduler's clock is turned into the boot clock: left_ns is 0 where it is not known, else at
 * most time_ns. */
int snapshot_take(struct snapshots *s, struct snapshot *out, struct err *e);
void snapshot_release(struct snapshot *s);
/* The same thread in another one; NULL: it has ended. */
const struct pstack_record *snapshot_find(const struct snapshot *s,
					  const struct pstack_record *thread);

/* All sockets that processes have descriptors of, by process and descriptor. */
struct sockets {
	struct pstack_socket *rows;
	size_t n;
};
int sockets_read(struct snapshots *s, struct sockets *out, struct err *e);
void sockets_release(struct sockets *s);
/* NULL: not a socket, or it was not one then. */
const struct pstack_socket *sockets_find(const struct sockets *s, uint32_t tgid, uint32_t fd);

#endif
