/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lastprof: the last profile of a Go process that ends: the loader's side of probes/goheap.bpf.c.
 * After each reading the addresses of a process's records are left for the program; what it sends
 * when the process dies is taken in as one more reading of those buckets.
 */
#ifndef SONDE_GOHEAP_LASTPROF_H
#define SONDE_GOHEAP_LASTPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct bpf_object;
struct goproc;
struct lastprof;

/* Load and attach. *obj is for the cost ledger. */
int lastprof_open(struct lastprof **out, struct bpf_object **obj, struct err *e);
void lastprof_close(struct lastprof *l); /* NULL is fine */
/* Leave the addresses of its records, those that are new since the last time. NULL is fine for `l`
 * here and below. */
void lastprof_arm(struct lastprof *l, struct goproc *p);
void lastprof_disarm(struct lastprof *l, struct goproc *p);
/* Take in what has come. `find` gives the process; `done` is called when all of one is in. */
struct lastprof_ops {
	struct goproc *(*find)(void *ctx, uint32_t tgid, uint64_t start_ns, uint32_t exec_id);
	void (*done)(void *ctx, struct goproc *p, const char *cause);
	void *ctx;
};
void lastprof_read(struct lastprof *l, const struct lastprof_ops *ops);
/* Pieces of profiles that found the ring full. */
uint64_t lastprof_lost(const struct lastprof *l);

/* "signal 9", "out of memory", "exit 2". */
void lastprof_cause(uint32_t cause, uint32_t code, char *out, size_t size);

#endif
