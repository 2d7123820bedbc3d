/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump: names, lines and moves of generated code, as a process's runtime writes them for perf
 * (node --perf-prof, PHP's opcache.jit_debug, perf's agent for the JVM). Source: the Linux kernel's
 * tools/perf/Documentation/jitdump-specification.txt.
 *
 * 1. The file is jit-PID.dump, or jit-TID-PID.dump of JavaScriptCore (Bun), anywhere; it is found
 *    because the process maps its beginning executable.
 * 2. Head: u32 "JiTD" (0x4A695444), version 1, size of the head, ELF machine, padding, pid; u64
 *    time, flags. Then records: u32 kind, u32 size of the whole record; u64 time. In the host's
 *    byte order; another one is refused.
 * 3. CODE_LOAD (0): u32 pid, tid; u64 address it was compiled for, address, size, number; the name,
 *    NUL-terminated; the code. CODE_MOVE (1): u32 pid, tid; u64 as above, old address, new address,
 *    size, number. DEBUG_INFO (2), before its CODE_LOAD: u64 address, number of entries; each u64
 *    address, u32 line, u32 discriminator, the file, NUL-terminated; the file "\xff" means that of
 *    the previous entry. Other kinds are skipped.
 * 4. Of overlapping ranges the later one counts. Moved code has no name at its old address.
 */
#ifndef SONDE_HOST_JITDUMP_H
#define SONDE_HOST_JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#define JITDUMP_PLACES_MAX (1u << 16)   /* of one function */
#define JITDUMP_RECORDS    (400u << 10) /* looked at */
#define JITDUMP_BYTES      (12u << 20)  /* kept of a file: names and moves */
#define JITDUMP_LINES      (6u << 20)   /* of these: lines */

struct perfmap;

/* Reads of a file what jitdump_parse uses: heads, names, moves, and lines as long as there is room
 * for them; not the code. The caller frees *out. -E2BIG: over one of the limits above. -errno. */
int jitdump_slim(int fd, uint64_t size, char **out, size_t *len);
/* Pure. Parsing ends at an incomplete record and skips malformed ones. -EBADMSG: not a jitdump, or
 * another process's (`pid`, in its own pid namespace). -E2BIG: too many names (perfmap.h). */
int jitdump_parse(const void *data, size_t len, uint32_t pid, struct perfmap **out);
/* Which of these files is its jitdump, by the name; NULL: none. */
const char *jitdump_path(const char *const *paths, size_t n, uint32_t pid);

#endif
