/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspotpart: the index's section HOTSPOT (schema/image/format.h, condition 15) of a libjvm: where
 * HotSpot's tables about itself have each number.
 *
 * gHotSpotVMStructs, gHotSpotVMTypes and gHotSpotVMIntConstants are pointers to arrays that end
 * with an entry without a name:
 *   structs, 48 bytes:   type's name, member's name, its type (pointers), u32 is static, u64
 *                        offset, address
 *   types, 40 bytes:     name, super class (pointers), 3 x u32, u64 size at 32
 *   constants, 16 bytes: name (pointer), i32
 * Names and addresses are in the file; offsets and sizes are there or are written while the library
 * is loaded (JDK 12 on). The section has their places. Source: OpenJDK's
 * src/hotspot/share/runtime/vmStructs.{hpp,cpp}.
 */
#ifndef SONDE_INDEX_HOTSPOTPART_H
#define SONDE_INDEX_HOTSPOTPART_H

#include "loaders/index/elf/elffile.h"
#include "loaders/index/elf/runsyms.h"
#include "probes/runtimes/hotspot_layout.h"

/* -ENOENT: no HotSpot, or tables that lack what each version that is known has. Else as
 * source_read. */
int hotspotpart_make(struct elf_file *f, const struct runsyms *syms, struct hotspot_layout *out);

#endif
