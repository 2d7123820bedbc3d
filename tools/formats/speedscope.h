/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope: a fold as a file of speedscope.app, which Firefox-like viewers and editors read too.
 * Format, by https://www.speedscope.app/file-format-schema.json: shared.frames (name, file, line),
 * and one profile of type "sampled": samples are lists of frames, root first, weights their values.
 * The order of samples is that of the tree, not of time.
 */
#ifndef SONDE_TOOLS_SPEEDSCOPE_H
#define SONDE_TOOLS_SPEEDSCOPE_H

#include <stdio.h>

#include "tools/fold/fold.h"

/* `name`: what the profile is called. A stream that refuses bytes says so at its end. */
void speedscope_write(const struct fold *f, const char *name, FILE *out);

#endif
