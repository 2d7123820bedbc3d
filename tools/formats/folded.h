/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folded: a fold as lines `root;caller;leaf N`, N in samples: what flamegraph.pl, speedscope and
 * many others read. One line for each stack that has own samples; the sum of all N is the fold's
 * samples. Bytes that would break a line are written as \xNN: `;` in a name is \x3b, control bytes
 * and newlines likewise; what is not seen otherwise as \uNNNN (strbuf_addshown). A stack without
 * frames is `[no stack]`.
 */
#ifndef SONDE_TOOLS_FOLDED_H
#define SONDE_TOOLS_FOLDED_H

#include <stdio.h>

#include "schema/base/strbuf.h"
#include "tools/fold/flame/flame_tree.h"

/* Errors of the stream are left on the stream (ferror). */
void folded_write(const struct fold *f, FILE *out);

#endif
