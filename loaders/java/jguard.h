/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jguard: whether a process may be asked to open its attach socket. The question is a SIGQUIT,
 * which ends a program that does not catch it, and makes a Java virtual machine that does not take
 * it for a question print all its threads into the program's output. So each of these must be
 * certain before it is sent:
 *
 *  1. the process maps libjvm.so and no libj9vm: HotSpot
 *  2. it catches SIGQUIT (SigCgt): not before the machine has begun (with
 *     -Xrs it does not, and opens its socket by itself)
 *  3. it has a thread "Signal Dispatcher", which takes the signal
 *  4. it is neither stopped nor frozen: a signal that waits would be taken after the attach file is
 *     gone
 *  5. -XX:+DisableAttachMechanism is not on: neither on its command line nor in the variables that
 *     add to it. Where options come from a file (@FILE, -XX:Flags=, -XX:VMOptionsFile=) only what
 *     the machine itself says of its options (hsperfdata) is certain
 *
 * Pure: `seen` is what was read of the process.
 */
#ifndef SONDE_JAVA_JGUARD_H
#define SONDE_JAVA_JGUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jguard_seen {         /* texts end with NUL; NULL: could not be read */
	const char *status;  /* /proc/PID/status */
	const char *maps;    /* /proc/PID/maps */
	const char *cmdline; /* /proc/PID/cmdline, with its length */
	size_t cmdline_len;
	const char *environment; /* /proc/PID/environ, the same */
	size_t environment_len;
	const char *perf; /* what it writes about itself, hsperfdata */
	size_t perf_len;
	bool dispatcher; /* 3 */
	bool frozen;     /* its cgroup is */
};

/* NULL: it may be asked; else why not (a static text). */
const char *jguard_refuses(const struct jguard_seen *seen);
/* Does it look like HotSpot at all (1)? */
bool jguard_is_hotspot(const char *maps);

/* Reads a process and judges it. `nspid`: in its own pid namespace. */
const char *jguard_process(uint32_t pid, uint32_t nspid);

#endif
