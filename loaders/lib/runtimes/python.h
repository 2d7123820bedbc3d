/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python: the Python part of a thread's stack in user space, and its place in the native stack.
 * probes/runtimes/python.h walks; this finds the thread's state, names the frames and places them.
 *
 * 1. The thread's state is one whose thread_id is the thread's fs_base (pthread_self() of glibc and
 *    musl), among those of all interpreters. A thread may have several (subinterpreters): from 3.11
 *    on the frames of all of them count, before that none.
 * 2. PYTHON_CFRAMES, PYTHON_SHIMS: a chunk belongs to the native frame whose part of the stack,
 *    from its stack pointer up to its caller's, contains the chunk's mark. A chunk whose mark is in
 *    no native frame is left out (it belongs to a coroutine's other stack), unless the native stack
 *    could not be followed to its root and the mark is above its end: then it comes last.
 * 3. PYTHON_OBJECTS: the k-th frame belongs to the k-th native frame in the loop's code, counted
 *    from the innermost. If the innermost native frame is in the loop and there is one frame too
 *    few, that call of the loop has none yet: the k-th belongs to the k+1-th. The remaining frames
 *    come last if the native stack has no root, else with the outermost.
 *
 * The caller must make sure that the thread does not run meanwhile. The result for a running thread
 * is useless, but takes bounded time.
 */
#ifndef SONDE_RUNTIMES_PYTHON_H
#define SONDE_RUNTIMES_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/runtimes/pycode.h"

#define PYTHON_STACK_MAX   SCRIPT_STACK_MAX
#define PYTHON_THREADS_MAX 32768
#define PYTHON_INTERPS_MAX 1024

struct python;

/* One process's interpreter. `section`: image_part's of the file that is mapped with `bias` added
 * to its addresses; not kept. NULL: another format, or what is there is not what the section says
 * (it has not begun, or is a stranger's trick). `m` is borrowed until python_close. */
struct python *python_open(const struct runtime_memory *m, const void *section, size_t size,
			   uint64_t bias);
void python_close(struct python *p); /* NULL is fine */

/* The GIL (3.7 on): does a stopped thread hold it, or wait for it? `futex`: the futex it waits for
 * in the kernel; 0: none. */
enum runtime_gil python_gil(struct python *p, uint64_t fs_base, uint64_t futex);

/* Appends nothing where the thread runs no Python. */
void python_stack(struct python *p, const struct runtime_native *native, struct script_stack *out);

#endif
