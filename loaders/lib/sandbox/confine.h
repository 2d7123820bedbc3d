/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine: removes rights from a loader (and sonded, sonde-maps) once it records, in case an
 * attacker takes it over. It keeps what recording needs (its BPF programs and maps, reading other
 * processes' files and memory, writing the store). It refuses (EPERM) what it never does:
 *
 * - run another program
 * - load another BPF program
 * - write to another process or trace it
 * - sockets other than Unix and netlink (so no network)
 * - mounts, namespaces, modules, clocks, keys, io_uring, I/O ports, another user
 * - memory that is both writable and executable
 * - typing into a terminal (TIOCSTI)
 *
 * It is a list of refusals, not of permissions: a recorder that loses data because of a new libc's
 * system call would be worse. It applies to all threads and to the programs they start.
 */
#ifndef SONDE_CONFINE_H
#define SONDE_CONFINE_H

#include "schema/base/err.h"

/* it starts programs later: sonde-maps, if no one else does; a parser again */
#define CONFINE_EXECS 1u
/* it loads or attaches programs later, which libbpf tries out by loading others */
#define CONFINE_LOADS   2u
#define CONFINE_HANDLES 4u /* it opens files by handle: cgroups by their number */
/* it starts sonde-maps again, which is no more than who started it */
#define CONFINE_MAPS (CONFINE_EXECS | CONFINE_LOADS | CONFINE_HANDLES)
/* what it starts has other rights: sockets of any kind, code that is made */
#define CONFINE_OTHERS 8u

/* what it starts becomes another user: sonde-java's, to attach to a Java program */
#define CONFINE_USERS 16u

/* 0; or what the kernel says, and the process may do all it could before. There is no way back. */
int confine(unsigned int keeps, struct err *e);

#endif
