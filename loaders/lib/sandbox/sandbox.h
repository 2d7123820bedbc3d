/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: restricts a process before it reads an untrusted file: it may compute, read and write
 * its open descriptors, and use its socket. Anything else kills it.
 *
 * No new privileges, no capability, an empty bounding set; 10 s of CPU, 1 GiB of address space
 * (SANDBOX_LARGE: 60 s, 2 GiB), 256 MiB a file, no core, no further process, 16 descriptors; a
 * seccomp allow-list whose default is to kill the process (except readlink: EACCES, because libdw
 * asks for the path of each file that it is given). Memory may never become executable. Under
 * sanitizers the address space is not limited and their system calls are allowed.
 */
#ifndef SONDE_SANDBOX_H
#define SONDE_SANDBOX_H

#include <stdint.h>

#include "schema/base/err.h"

/* SANDBOX_LARGE: for debug information of hundreds of megabytes, read apart at low priority. */
/* SANDBOX_STAYS: for one that reads as long as its parent does: no limit on CPU, half the memory,
 * and it may wait (poll, epoll_wait). */
/* SANDBOX_NAMES: for a list of names, read by a child that is a copy of its parent: 2 s of CPU, and
 * the address space that it has already and a little more. */
/* SANDBOX_FILES: as SANDBOX_STAYS, with 1024 descriptors. */
enum sandbox_size { SANDBOX_SMALL, SANDBOX_LARGE, SANDBOX_STAYS, SANDBOX_NAMES, SANDBOX_FILES };

#define SANDBOX_CPU_SECONDS        10
#define SANDBOX_CPU_SECONDS_LARGE  60
#define SANDBOX_CPU_SECONDS_NAMES  2
#define SANDBOX_MEMORY_BYTES       (1ull << 30)
#define SANDBOX_MEMORY_BYTES_LARGE (2ull << 30)
#define SANDBOX_MEMORY_BYTES_STAYS (512ull << 20)
#define SANDBOX_MEMORY_BYTES_NAMES (96ull << 20)
#define SANDBOX_OUTPUT_BYTES       (256ull << 20)
#define SANDBOX_DESCRIPTORS        16
#define SANDBOX_DESCRIPTORS_FILES  1024

/* There is no way back. On error the process must not read strangers' files. */
int sandbox_enter(enum sandbox_size size, struct err *e);
/* The first part of it alone, for a process that only starts others which enter the sandbox: it has
 * no capability afterwards, and cannot get one. 0, -errno. */
int sandbox_powers_drop(void);
/* All capabilities but those of `keep` (bits by number) go, and none can be got. */
void sandbox_powers_keep(uint64_t keep);

#endif
