/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls: what a thread that sleeps in a system call waits for. */
#ifndef SONDE_OFFCPU_SYSCALLS_H
#define SONDE_OFFCPU_SYSCALLS_H

#include <linux/types.h>
#include <stddef.h>

/* class[n]: enum offcpu_class of system call n, of those that can wait long; all others stay as they are. */
void syscalls_fill(volatile __u8 *class, size_t n);

#endif
