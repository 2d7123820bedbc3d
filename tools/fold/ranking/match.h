/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match: which functions a word on the command line means: those of that name, else those whose
 * name it matches as a POSIX extended regular expression.
 */
#ifndef SONDE_TOOLS_MATCH_H
#define SONDE_TOOLS_MATCH_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

/* hit[i] becomes 1 for each of the `n` frames that is meant; groups never are. -ENOENT with
 * EXIT_NOTHING and did-you-mean if none is, EXIT_USAGE if the text is not a valid regular
 * expression either.
 */
int match_functions(const struct fold_frame *frames, size_t n, const char *text, uint8_t *hit,
		    struct err *e);

#endif
