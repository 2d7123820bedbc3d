/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: the process without rights that reads log files and counts what is in them (wire.h), as
 * the loader starts it, asks it and starts it again. It is a copy of the loader in the sandbox
 * (SANDBOX_FILES) with these descriptors: the loader's socket, and the files that it is given.
 */
#ifndef SONDE_LOGS_READER_H
#define SONDE_LOGS_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/logs/wire.h"

struct reader {
	int fd; /* -1: it does not run */
	pid_t pid;
	uint32_t bucket_s;
	bool text;
	uint64_t cpu_ns, ended_ns; /* of the one that runs; of those that ended */
	uint32_t *reads;           /* shared with it: the file that it reads now */
};

/* 0, -errno. Call it first from a program's main thread, before it has much memory. */
int reader_start(struct reader *r);
/* false: it has ended. `fd` -1: none. */
bool reader_ask(const struct reader *r, const struct wire_ask *q, int fd);
/* Asks READ and passes what it answers to `take`, up to WIRE_DONE. False: it ended, or did not
 * answer in time; then it is killed. *more: it has not read everything. */
bool reader_read(struct reader *r, const struct wire_ask *q,
		 void (*take)(void *ctx, const struct wire_said *x, const char *const text[2]),
		 void *ctx, bool *more);
void reader_end(struct reader *r);
uint64_t reader_cpu_ns(const struct reader *r);

/* The other side: never returns. */
_Noreturn void reading_main(int sock, uint32_t bucket_s, bool text, uint32_t *reads);

#endif
