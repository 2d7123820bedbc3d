/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: what a process may still do once it reads a stranger's file: compute, read and write the descriptors it
 * has, and talk over its socket. Everything else kills it.
 *
 * No new privileges, no capability, an empty bounding set; 10 s of CPU, 1 GiB of address space, 256 MiB a file, no
 * core, no further process, 16 descriptors; a seccomp allow-list whose default is to kill the process. Memory may never
 * become executable. Under sanitizers the address space is not limited and their own calls are allowed.
 */
#ifndef SONDE_INDEX_SANDBOX_H
#define SONDE_INDEX_SANDBOX_H

#include "schema/base/err.h"

#define SANDBOX_CPU_SECONDS   10
#define SANDBOX_MEMORY_BYTES  (1ull << 30)
#define SANDBOX_OUTPUT_BYTES  (256ull << 20)
#define SANDBOX_DESCRIPTORS   16

/* There is no way back. On error the process must not read strangers' files. */
int sandbox_enter(struct err *e);

#endif
