/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby: the Ruby part of a thread's stack in user space, and where it stands in the native one.
 * probes/runtimes/ruby.h walks; this finds the thread's execution context, names what was walked,
 * and puts it in place.
 *
 * 1. Places: chunks.h. Functions of C stand with the chunk that called them, before it.
 * 2. Names: a frame with instructions says its label ("block in f") and its file; a function of C
 *    its method's name, by Ruby's table of ids, which must say the same id back. 3.3: with the
 *    class, "A#f" and "A.f", as far as it has a name.
 *
 * Objects are checked: their types in their flags, an instruction lies among its iseq's, a text
 * ends with 0. The thread must not run meanwhile: who calls sees to that. What it says of a thread
 * that ran is void, but bounded.
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
