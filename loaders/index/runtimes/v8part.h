/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8part: the index's section V8 (schema/image/format.h, condition 15) of a file that contains V8:
 * node, libnode.
 *
 * 1. Symbols v8dbg_NAME, which V8 exports for debuggers, are ints: offsets, types, constants. Names
 *    change with versions, which is why one number may have several. Source: V8's
 *    tools/gen-postmortem-metadata.py.
 * 2. V8's version is two ints, Version::major_ and minor_; where these have no symbol it is a text,
 *    to which V8::GetVersion() returns a pointer: its code is one mov from a variable.
 * 3. The code of builtins is one block; its address at run time is a variable that
 *    Isolate::CurrentEmbeddedBlobCode() returns, its size another one. Where these have no symbol,
 *    Isolate::GetEmbeddedCodeRange() calls them: size third, code fourth.
 * 4. Node's version is three u32, whose address napi_get_node_version() stores: the operand
 *    of a mov, or of a lea.
 * 5. What V8 does not export is in tables here, for Node 16 (9.4), 18 (10.2), 20 (11.3), 22
 *    (12.4), 24 (13.6). Another version, or one whose constants are not those of such a build
 *    (pointers that are compressed), is reported as unknown.
 */
#ifndef SONDE_INDEX_V8PART_H
#define SONDE_INDEX_V8PART_H

#include <stdbool.h>

#include "loaders/index/elf/elffile.h"
#include "probes/runtimes/v8_layout.h"

enum v8_symbol {
	V8_SYMBOL_VERSION,
	V8_SYMBOL_MAJOR,
	V8_SYMBOL_MINOR,
	V8_SYMBOL_BLOB,
	V8_SYMBOL_BLOB_SIZE,
	V8_SYMBOL_BLOB_RANGE,
	V8_SYMBOL_BYTECODES,
	V8_SYMBOL_NODE,
	V8_SYMBOL_TAGGED_SIZE,
	V8_SYMBOL_SMI_SHIFT,
	V8_SYMBOL_N
};

struct v8_symbols {
	uint64_t code[V8_SYMBOL_N]; /* addresses; 0: not there */
	uint64_t bytecodes_size;    /* of V8_SYMBOL_BYTECODES */
	uint64_t at[V8_N];
};

/* A symbol that may be one of these. */
void v8_symbols_note(struct v8_symbols *s, const char *name, uint64_t addr, uint64_t size);

/* "11.3.244.8-node.38" -> 0x0b03; 0: no version. */
uint32_t v8part_version(const char *text, size_t len);

/* -ENOENT: no V8. What is not known has `known` 0. Else as source_read. */
int v8part_make(struct elf_file *f, const struct v8_symbols *syms, struct v8_layout *out);

#endif
