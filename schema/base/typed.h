/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed: hints name commands in the form that the reader can type.
 *
 *  1. `sonde` is "sonde" where $PATH leads to this very program, else its path: a relative one
 *     below the working directory (build/bin/sonde), which is shorter.
 *  2. Behind sudo, which sets another $PATH, it is "sonde" only if it is in one of the system's
 *     folders.
 *  3. Root needs no sudo; containers often have none.
 * Programs in libexec are never named in hints; what they do has a verb.
 */
#ifndef SONDE_BASE_TYPED_H
#define SONDE_BASE_TYPED_H

#include <stdbool.h>

#include "schema/base/strbuf.h"

/* "sonde", "build/bin/sonde": for this process; for a program in libexec, the `sonde` that it was
 * installed with. Not thread-safe. */
const char *typed_sonde(bool sudo);
/* Adds a hint: each command in it that begins with "sonde VERB" or "sudo", as above; everything
 * else unchanged. */
void typed_add(struct strbuf *out, const char *hint);

#endif
