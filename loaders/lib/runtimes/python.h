/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python: the Python part of a thread's stack in user space, and where it stands in the native one.
 * probes/runtimes/python.h walks; this finds the thread's state, names what was walked, and puts it
 * in place.
 *
 * 1. The thread's state is one whose thread_id is the thread's fs_base (pthread_self() of glibc and
 *    musl), among all of all interpreters. A thread may have several (subinterpreters): from 3.11
 *    on the frames of all count, before that of none.
 * 2. PYTHON_CFRAMES, PYTHON_SHIMS: a chunk stands for the native frame whose part of the stack,
 *    from its stack pointer up to its caller's, holds the chunk's mark. One whose mark no native
 *    frame holds is left out (it belongs to a coroutine's other stack), unless the native stack
 *    could not be followed to its root and the mark lies above its end: then it comes last.
 * 3. PYTHON_OBJECTS: the k-th frame stands for the k-th native frame in the loop's code, counted
 *    from the innermost. If the innermost native frame of all is in the loop and there is one frame
 *    too few, that call of the loop has none yet: the k-th stands for the k+1-th. What is left over
 *    comes last where the native stack has no root, else with the outermost.
 *
 * The thread must not run meanwhile: who calls sees to that. What it says of a thread that ran is
 * void, but bounded.
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

/* One process's interpreter. `section`: image_python's, of the file that is mapped with `bias`
 * added to its addresses; not kept. NULL: another format, or what is there is not what the section
 * says (it has not begun, or is a stranger's trick). `m` is borrowed until python_close. */
struct python *python_open(const struct runtime_memory *m, const void *section, size_t size,
			   uint64_t bias);
void python_close(struct python *p); /* NULL is fine */

/* The lock (3.7 on): does a thread that stands hold it, or wait for it? `futex`: on what it waits
 * in the kernel; 0: on no futex. */
enum runtime_gil python_gil(struct python *p, uint64_t fs_base, uint64_t futex);

/* Appends nothing where the thread runs no Python. */
void python_stack(struct python *p, const struct runtime_native *native, struct script_stack *out);

#endif
