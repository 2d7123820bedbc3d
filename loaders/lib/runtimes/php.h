/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php: the PHP part of a thread's stack in user space, and its place in the native stack.
 * probes/runtimes/php.h walks; this names the frames and places them.
 *
 * 1. The engine without thread safety belongs to one thread: the one whose native stack is in its
 *    loop, execute_ex; in a program that is PHP itself also the first one, if its native stack ends
 *    in machine code of the JIT. Other threads have no script frames.
 * 2. Places: chunks.h. C functions belong to the chunk that called them, and come before it.
 * 3. Generators waiting in "yield from" come between the running one and the function that resumed
 *    it.
 * 4. Names: phpcode.h.
 *
 * The caller must make sure that the thread does not run meanwhile. The result for a running thread
 * is useless, but takes bounded time.
 */
#ifndef SONDE_RUNTIMES_PHP_H
#define SONDE_RUNTIMES_PHP_H

#include "loaders/lib/runtimes/script.h"

struct php;

/* For struct runtime_walker (runtimes.h). */
struct php *php_open(const struct runtime_memory *m, const void *section, size_t size,
		     uint64_t bias);
void php_close(struct php *p); /* NULL is fine */
void php_stack(struct php *p, const struct runtime_native *native, struct script_stack *out);

#endif
