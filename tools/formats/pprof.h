/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: a fold as a gzipped profile.proto (google/pprof), for `go tool pprof`, speedscope and
 * others.
 *
 *  1. Sample types are [samples/count, cpu/nanoseconds], the default is cpu; period is that of the
 * finest run used.
 *  2. One Sample for each (stack, process, thread), locations leaf first, with the labels pid, tid
 * (numbers), thread, comm, container, container_id (strings; left out when empty).
 *  3. A Location is one physical frame with the frames inlined into it: lines go from the innermost
 * outwards. What has no name is a function called "module+0x1a2b", never a bare address.
 *  4. A Mapping is one module (path, build-id). The store knows offsets within files, not where
 * they were mapped (that differs from process to process): user modules are laid out one after the
 * other, address = start + offset, so that address - start + file offset 0 is the place in the
 * file. Kernel and JIT addresses are kept as they are. The first mapping is the executable that
 * used most CPU time.
 *  5. has_functions is set only for a mapping whose frames all have names; likewise has_filenames,
 * has_line_numbers.
 *  6. Leaves that are a base (fold_join) have negative values and the label pprof::base=true: what
 * `go tool pprof -diff_base` makes of two files.
 *  7. A stack without frames is the function "[no stack]". Losses, host and kernel are in the
 * comments.
 *
 * The fold must have been made with leaves and without groups.
 */
#ifndef SONDE_TOOLS_PPROF_H
#define SONDE_TOOLS_PPROF_H

#include <stdio.h>

#include "schema/base/strbuf.h"
#include "tools/fold/fold.h"

/* The message as bytes, not compressed. */
void pprof_encode(const struct fold *f, struct strbuf *out);
/* The same without labels: for who keeps a series of profiles for each set of them. */
void pprof_encode_bare(const struct fold *f, struct strbuf *out);
/* pprof_encode, gzipped. 0, or -EIO (errno says why a stream refused it; the caller checks the
 * stream). */
int pprof_write(const struct fold *f, FILE *out);

#endif
