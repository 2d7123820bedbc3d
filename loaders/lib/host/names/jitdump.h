/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump: names, lines and moves of code that a process makes, as its runtime writes them for perf
 * (node --perf-prof, PHP's opcache.jit_debug, perf's agent for the JVM). Source: the Linux kernel's
 * tools/perf/Documentation/jitdump-specification.txt.
 *
 * 1. The file is jit-PID.dump, anywhere; the process maps its beginning executable, which is how it
 *    is found.
 * 2. Head: u32 "JiTD" (0x4A695444), version 1, size of the head, ELF machine, padding, pid; u64
 *    time, flags. Then records: u32 kind, u32 size of the whole record; u64 time. Of the host's
 *    byte order; another one is refused.
 * 3. CODE_LOAD (0): u32 pid, tid; u64 address it was compiled for, address, size, number; the name,
 *    ended by 0; the code. CODE_MOVE (1): u32 pid, tid; u64 as above, old address, new address,
 *    size, number. DEBUG_INFO (2), before the CODE_LOAD that it is of: u64 address, how many; each
 *    u64 address, u32 line, u32 discriminator, the file, ended by 0; the file "\xff" is that of the
 *    entry before. Other kinds are skipped.
 * 4. Of ranges that overlap the later one holds. What was moved has no name where it was.
 */
#ifndef SONDE_HOST_JITDUMP_H
#define SONDE_HOST_JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#define JITDUMP_PLACES_MAX (1u << 16) /* of one function */

struct perfmap;

/* Pure. A record that is cut off ends it; one that makes no sense is skipped. -EBADMSG: no jitdump,
 * or another process's (`pid`, as it counts itself). */
int jitdump_parse(const void *data, size_t len, uint32_t pid, struct perfmap **out);
/* Which of these files is its jitdump, by the name; NULL: none. */
const char *jitdump_path(const char *const *paths, size_t n, uint32_t pid);

#endif
