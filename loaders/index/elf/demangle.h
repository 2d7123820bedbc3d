/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demangle: readable names of C++ and Rust (legacy and v0), by libiberty, spelled as `nm -C` spells
 * them: parameters and template arguments kept, Rust's hash suffix dropped, clones told apart
 * ("f(int) [clone .cold]"). Cost is bounded: a name whose readable form would be longer than
 * IMAGE_NAME_MAX stays as it is, however short it is (substitutions grow exponentially), and so
 * does a mangled name of more than DEMANGLE_INPUT_MAX bytes.
 */
#ifndef SONDE_INDEX_DEMANGLE_H
#define SONDE_INDEX_DEMANGLE_H

#include <stdbool.h>

#include "schema/base/strbuf.h"

#define DEMANGLE_INPUT_MAX 4096

/* Writes the readable form into `out` (emptied first). false: there is none, show the name itself.
 */
bool demangle(const char *mangled, struct strbuf *out);

#endif
