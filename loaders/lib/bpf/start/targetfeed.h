/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targetfeed: what sonded sends a loader while it runs, over a pipe (--targets-fd): which processes
 * to look at. Lines, each written in one piece:
 *
 *   +TGID START_NS EXEC_ID     look at it (identity as in mapsproto.h)
 *   -TGID START_NS EXEC_ID     no longer: it has ended, or the configuration excludes it now
 *   =STEP                      do less by this number of steps (family.h: reduce); 0: do everything
 *
 * The loader says which kind it wants in its progress: {"event": "wants", "targets": "go"}: "go"
 * (Go programs), "libssl" (libssl is mapped) or "all".
 */
#ifndef SONDE_BPF_TARGETFEED_H
#define SONDE_BPF_TARGETFEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct targetfeed;

/* Takes over `fd` and makes it non-blocking. */
struct targetfeed *targetfeed_new(int fd);
void targetfeed_free(struct targetfeed *f); /* NULL is fine */
/* Read what has arrived. If the other end closes, the targets stay. */
void targetfeed_read(struct targetfeed *f);
/* From the last =STEP; 0 before the first. */
uint32_t targetfeed_step(const struct targetfeed *f);
bool targetfeed_has(const struct targetfeed *f, uint32_t tgid, uint64_t start_ns, uint32_t exec_id);
/* Pure but for `f`: bytes as they arrive, split anywhere. Skips other lines. For tests and the
 * fuzzer. */
void targetfeed_take(struct targetfeed *f, const char *bytes, size_t len);

#endif
