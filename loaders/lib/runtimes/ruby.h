/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby: the Ruby part of a thread's stack in user space, and its place in the native stack.
 * probes/runtimes/ruby.h walks; this finds the thread's execution context, names the frames and
 * places them.
 *
 * 1. Places: chunks.h. C functions belong to the chunk that called them, and come before it.
 * 2. Names: a frame with instructions has a label ("block in f") and a file; a C function has its
 *    method's name, by Ruby's table of ids, which must map back to the same id. 3.3: with the
 *    class, "A#f" and "A.f", if it has a name.
 *
 * Objects are checked: the type in their flags; an instruction must be inside its iseq; a text must
 * end with
 * 0. The caller must make sure that the thread does not run meanwhile. The result for a running
 *    thread is
 * useless, but takes bounded time.
 */
#ifndef SONDE_RUNTIMES_RUBY_H
#define SONDE_RUNTIMES_RUBY_H

#include "loaders/lib/runtimes/script.h"

struct ruby;

/* As struct runtime_walker says (runtimes.h). */
struct ruby *ruby_open(const struct runtime_memory *m, const void *section, size_t size,
		       uint64_t bias);
void ruby_close(struct ruby *r); /* NULL is fine */
void ruby_stack(struct ruby *r, const struct runtime_native *native, struct script_stack *out);

#endif
