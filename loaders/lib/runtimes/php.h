/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php: the PHP part of a thread's stack in user space, and where it stands in the native one.
 * probes/runtimes/php.h walks; this names what was walked, and puts it in place.
 *
 * 1. The engine without thread safety is one thread's: the one whose native stack is in its loop,
 *    execute_ex; in a program that is PHP itself the first one too, where its native stack ends in
 *    machine code of the JIT. Others have no script frames.
 * 2. Places: chunks.h. Functions of C stand with the chunk that called them, before it.
 * 3. Generators that wait in "yield from" stand between the one that runs and who resumed it.
 * 4. Names: phpcode.h.
 *
 * The thread must not run meanwhile: who calls sees to that. What it says of a thread that ran is
 * void, but bounded.
 */
#ifndef SONDE_RUNTIMES_PHP_H
#define SONDE_RUNTIMES_PHP_H

#include "loaders/lib/runtimes/script.h"

struct php;

/* As struct runtime_walker says (runtimes.h). */
struct php *php_open(const struct runtime_memory *m, const void *section, size_t size,
		     uint64_t bias);
void php_close(struct php *p); /* NULL is fine */
void php_stack(struct php *p, const struct runtime_native *native, struct script_stack *out);

#endif
