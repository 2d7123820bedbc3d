/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopart: the index's section GO (schema/image/format.h, condition 14).
 *
 * The version is that of the build information (src/debug/buildinfo, Go 1.13 on), in section
 * .go.buildinfo, else at the beginning of a writable segment: 14 bytes "\xff Go buildinf:", u8
 * pointer size, u8 flags (1: big endian; 2: the strings follow at byte 32, each behind its length
 * as a varint: Go 1.18 on), else, at byte 16, a pointer to a Go string: the version. The
 * information begins at a multiple of 16.
 *
 * After the version, in the same way (length and bytes, or a second pointer to a string), comes the
 * text about modules: 16 bytes, lines, 16 bytes. Lines are words with tabs between them: "path P",
 * "mod PATH VERSION SUM", "dep ...", "build CGO_ENABLED=1" (Go 1.18 on). Without a module the
 * program is identified by its path.
 *
 * bss_start and bss_end are moduledata's bss and enoptrbss, words 18 and 21 in Go 1.2 to 1.15, 28
 * and 31 from 1.16 on.
 */
#ifndef SONDE_INDEX_GOPART_H
#define SONDE_INDEX_GOPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/elffile.h"
#include "loaders/index/go/gotable.h"
#include "schema/image/format.h"

/* What the text about modules says: main_path, main_version, IMAGE_GO_CGO. Pure over (bytes, len).
 */
void gopart_modules(const char *text, size_t len, struct image_go_record *out);

/* Where version and modules are. */
struct gopart_build {
	const char *version; /* borrowed, not NUL-terminated; NULL: at `pointer` */
	size_t len;
	const char *modules; /* the same; NULL: at `modules_pointer`, or none */
	size_t modules_len;
	uint64_t pointer; /* of a Go string: its address and its length follow there */
	uint64_t modules_pointer;
	unsigned ptr_size;
};

/* Build information at the first multiple of 16 of these bytes that holds some. Pure. false: none.
 */
bool gopart_build_find(const void *data, size_t len, struct gopart_build *out);
/* 0; else as source_read. */
int gopart_make(struct elf_file *f, const struct go_table *t, const struct go_symbols *syms,
		struct image_go_record *out);
/* Of a file that says it is Go, whose table of functions cannot be read: a lie, or a Go that is not
 * known yet. -ENOENT: it does not say so. */
int gopart_make_unread(struct elf_file *f, const struct go_symbols *syms,
		       struct image_go_record *out);

#endif
