/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine: what a loader (and sonded, sonde-maps) may no longer do once it records, whoever has
 * taken it over. It keeps what it records with (its BPF programs and maps, other processes' files
 * and memory to read, the store to write); refused (EPERM) is what it never does:
 *
 *   run another program; load a further BPF program; write to another process or trace it; any
 *     socket but Unix and netlink ones (so no
 *   network); mounts, namespaces, modules, clocks, keys, io_uring, ports of the machine, another
 *     user; memory that is written and executed;
 *   typing into a terminal (TIOCSTI).
 *
 * A list of what is refused, not of what is allowed: a recorder that lost data for a system call of
 * a new libc would be worse. It holds for all threads and for what they start.
 */
#ifndef SONDE_CONFINE_H
#define SONDE_CONFINE_H

#include "schema/base/err.h"

/* it starts programs later: sonde-maps, where nobody else does; a parser again */
#define CONFINE_EXECS 1u
/* it loads or attaches programs later, which libbpf tries out by loading others */
#define CONFINE_LOADS   2u
#define CONFINE_HANDLES 4u /* it opens files by handle: cgroups by their number */
/* it starts sonde-maps again, which is no more than who started it */
#define CONFINE_MAPS (CONFINE_EXECS | CONFINE_LOADS | CONFINE_HANDLES)
/* what it starts has other rights: sockets of any kind, code that is made */
#define CONFINE_OTHERS 8u

/* 0; or what the kernel says, and the process may do all it could before. There is no way back. */
int confine(unsigned int keeps, struct err *e);

#endif
