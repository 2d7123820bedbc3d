/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import: a profile that another program wrote, as a fold. What kind it is, its bytes say: "FLR" is
 * Java's flight recorder (tools/formats/jfr/jfr_read.h), gzip or a protobuf tag at the beginning is
 * pprof (tools/formats/pprof_read.h), a brace is JSON (tools/formats/json/json_read.h), head lines
 * and addresses are `perf script` (tools/formats/perfscript_read.h), all else folded stacks
 * (tools/formats/folded_read.h). Files of other kinds are refused by their first bytes.
 */
#ifndef SONDE_TOOLS_IMPORT_H
#define SONDE_TOOLS_IMPORT_H

#include <stdbool.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

#define IMPORT_MAX (256ull << 20) /* bytes, unpacked */

bool import_is_file(const char *path); /* there, and no folder */
bool import_knows(
	const char *name); /* ends as such files do: .pb.gz, .pprof, .folded, .perf, ... */
/* EXIT_RUNTIME if it cannot be read, EXIT_USAGE if it is no profile, EXIT_NOTHING if it is empty.
 * fold.too says which kinds besides its own the file has. */
int import_file(const char *path, const struct fold_opts *o, struct fold **out, struct err *e);

#endif
