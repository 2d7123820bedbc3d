/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targetfeed: what sonded tells a loader while it runs, over a pipe (--targets-fd): which processes
 * to look at. Lines, each whole in one write:
 *
 *   +TGID START_NS EXEC_ID     look at it       (identity as in mapsproto.h)
 *   -TGID START_NS EXEC_ID     no longer: it has ended, or the configuration excludes it now
 *
 *   =STEP                      do less by so many steps than all it does (family.h: slow); 0: all
 *
 * What a loader wants it tells by its progress: {"event": "wants", "targets": "go"}: "go" (Go
 * programs), "libssl" (libssl is mapped) or "all".
 */
#ifndef SONDE_BPF_TARGETFEED_H
#define SONDE_BPF_TARGETFEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct targetfeed;

/* Takes `fd` over and makes it non-blocking. */
struct targetfeed *targetfeed_new(int fd);
void targetfeed_free(struct targetfeed *f); /* NULL is fine */
/* Take in what has come. When the other end has gone what was given stays. */
void targetfeed_read(struct targetfeed *f);
/* Of the last line that said so; 0 before one did. */
uint32_t targetfeed_step(const struct targetfeed *f);
bool targetfeed_has(const struct targetfeed *f, uint32_t tgid, uint64_t start_ns, uint32_t exec_id);
/* Pure but for `f`: bytes as they come, cut anywhere. What is no such line is passed over. For
 * tests and the fuzzer. */
void targetfeed_take(struct targetfeed *f, const char *bytes, size_t len);

#endif
