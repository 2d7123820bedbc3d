/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sourcefile: the text of a source file, to show next to measurements. The path comes from debug
 * information, which is untrusted: only regular files of at most SOURCEFILE_MAX bytes are read,
 * with the rights that sourcereader.h gives, and nothing is executed.
 *
 * The file is the first of these that exists:
 *   1. for each "OLD=NEW" of `dirs`: the path, if it lies below OLD, with NEW for OLD;
 *   2. for each "DIR" of `dirs`: DIR and the path, then DIR and ever shorter ends of the path;
 *   3. the path itself, if it begins with '/'.
 * "." and ".." in the recorded path are resolved as text before, so that it never leads out of DIR
 * or NEW.
 */
#ifndef SONDE_TOOLS_SOURCEFILE_H
#define SONDE_TOOLS_SOURCEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/cli/options.h"
#include "schema/base/strbuf.h"
#include "tools/fold/ranking/sourcereader.h"

#define SOURCEFILE_MAX (16u << 20)

struct sourcefile;

/* NULL: it cannot be read; `why` then says what is in the way ("no such file"). */
struct sourcefile *sourcefile_open(const char *path, const struct option_list *dirs,
				   const struct sourcereader *r, const char **why);
void sourcefile_close(struct sourcefile *s);
/* Where it was found; last changed, in ns since 1970. Borrowed. */
const char *sourcefile_path(const struct sourcefile *s);
int64_t sourcefile_mtime_ns(const struct sourcefile *s);
/* Line `n`, from 1, for a terminal: tabs become spaces, what is not seen is shown. false: the file
 * has fewer lines. */
bool sourcefile_line(const struct sourcefile *s, uint32_t n, struct strbuf *out);

/* Pure, for tests: the i-th place to look at, from 0. false: no more. */
bool sourcefile_candidate(const char *path, const struct option_list *dirs, size_t i,
			  struct strbuf *out);

#endif
