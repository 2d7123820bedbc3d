/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed: hints name commands as whoever reads them can type them.
 *
 *  1. `sonde` is "sonde" where $PATH leads to this very program, else its path: below the working
 * directory the relative one (build/bin/sonde), so that it is short.
 *  2. Behind sudo, which has a $PATH of its own, it is "sonde" only where it stands in one of the
 * system's folders.
 *  3. Whoever is root types no sudo: there may be none, as in containers.
 * Programs in libexec are never named in hints; what they do has a verb.
 */
#ifndef SONDE_BASE_TYPED_H
#define SONDE_BASE_TYPED_H

#include <stdbool.h>

#include "schema/base/strbuf.h"

/* "sonde", "build/bin/sonde": of this process; of one in libexec the sonde that it was installed
 * with. Not thread-safe. */
const char *typed_sonde(bool sudo);
/* Adds a hint: each command in it that begins with "sonde VERB" or "sudo", as above; all else as it
 * stands. */
void typed_add(struct strbuf *out, const char *hint);

#endif
