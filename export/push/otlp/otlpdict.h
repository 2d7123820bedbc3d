/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlpdict: the dictionary of a request of OTLP's profiles (ProfilesDictionary of
 * profiles/v1development): texts, functions, mappings, locations, stacks and attributes, each once,
 * of the nodes of one fold. Index 0 of each table means none.
 *
 *  1. A mapping is a file (path, build-id); it begins at 0, so that a location's address is its
 * place in the file, or the kernel's or the JIT's own.
 *  2. A location is one physical frame with the frames that were inlined into it, the innermost
 * first, as pprof has them (tools/formats/pprof.h).
 *  3. Attributes are profile.frame.type of a location and process.executable.build_id.gnu of a
 * mapping.
 */
#ifndef SONDE_PUSH_OTLPDICT_H
#define SONDE_PUSH_OTLPDICT_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "tools/fold/fold.h"

struct otlpdict;

/* Nodes, frames and texts of the fold are borrowed. */
struct otlpdict *otlpdict_new(const struct fold *f);
void otlpdict_free(struct otlpdict *d); /* NULL is fine */
uint32_t otlpdict_text(struct otlpdict *d, const char *text);
/* The stack that ends at this node; one without frames is the function "[no stack]". */
uint32_t otlpdict_stack(struct otlpdict *d, uint32_t node);
/* Bytes so far. */
size_t otlpdict_size(const struct otlpdict *d);
/* The message. */
void otlpdict_write(const struct otlpdict *d, struct strbuf *out);

#endif
