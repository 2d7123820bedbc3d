/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nativemark: whether a program was compiled by GHC, OCaml or GraalVM, by a text that the runtime
 * of each has in all its programs, stripped or not. Sources: programs of Debian 12 (GHC 9.0,
 * OCaml 4.14), a native image of GraalVM 25.
 */
#ifndef SONDE_MAPS_NATIVEMARK_H
#define SONDE_MAPS_NATIVEMARK_H

#include <stddef.h>
#include <stdint.h>

#define NATIVEMARK_BYTES (256ull << 20) /* of a program that are looked at */

/* "native-image", "ghc", "ocaml"; NULL: none of them. Pure. */
const char *nativemark_find(const void *bytes, size_t len);
/* The same of the program that the process runs. NULL also: it cannot be read. */
const char *nativemark_of(uint32_t pid);

#endif
