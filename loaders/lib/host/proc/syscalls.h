/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls: names of this architecture's system calls, and what a thread waits for when it sleeps
 * in one. Pure. */
#ifndef SONDE_HOST_SYSCALLS_H
#define SONDE_HOST_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

/* "epoll_wait"; NULL: there was no such number when this was built. */
const char *syscall_name(int number);

enum syscall_wait {
	SYSCALL_OTHER = 0,
	SYSCALL_LOCK,
	SYSCALL_DISK,
	SYSCALL_NETWORK,
	SYSCALL_PIPE,
	SYSCALL_POLL,
	SYSCALL_SLEEP,
	SYSCALL_CHILD,
	SYSCALL_BY_FILE, /* depends on the descriptor in the first argument */
	SYSCALL_RESTART  /* continues the previous call */
};
enum syscall_wait syscall_wait(int number);
/* The same for a descriptor's st_mode: pipe, network, disk or other. */
enum syscall_wait syscall_wait_of_mode(uint32_t st_mode);
/* "lock", "disk", ...; "other" for any other value. */
const char *syscall_wait_name(enum syscall_wait w);

#endif
