/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: reading an image index, the file in which sonde-index wrote what sonde needs to know of
 * one ELF file. format.h has the layout. The reader depends on schema/base alone, trusts
 * nothing (an index may be damaged or hostile), copies nothing: names are borrowed from the mapping
 * and live until image_close.
 *
 * Addresses: a frame is (image, offset), where offset is the offset *within the file* (what
 * PERF_RECORD_MMAP2 and /proc/PID/maps allow to compute without opening the file: addr - map_start
 * + map_pgoff). Symbols are kept by the file's own virtual addresses; the segment table turns one
 * into the other.
 */
#ifndef SONDE_IMAGE_IMAGE_H
#define SONDE_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

/* hex build-id (or "nobuildid"), '-', 16 hex digits of the content hash, NUL */
#define IMAGE_KEY_MAX 160

struct image; /* opaque; readable from several threads at once */

struct image_ident {
	uint8_t build_id[64];
	size_t build_id_len;   /* 0: the file has none */
	uint64_t content_hash; /* of the bytes the index was made from */
	uint16_t machine;      /* e_machine */
	bool go;               /* holds Go's pclntab */
	bool from_debug_file;  /* symbols of a separate debug file were used */
	bool lines_later; /* the file has lines that this index leaves out: another one of it will
			     come */
};

struct image_symbol {
	const char *name; /* demangled, UTF-8 as far as the file was; NUL-terminated */
	uint64_t addr;    /* virtual address of the function's first byte */
	uint64_t size;
};

/* Map the index read-only and check it (magic, version, sizes, checksum). -EBADMSG: damaged or of
 * another version. `fd` stays the caller's and may be closed afterwards. */
int image_open_fd(int fd, struct image **out, struct err *e);
/* The same without its checksum, which is most of the work: of a descriptor from who has found that
 * right (sonde-maps, of each index that it hands out). What keeps look-ups within the mapping is
 * checked all the same. */
int image_open_sound_fd(int fd, struct image **out, struct err *e);
/* Is this descriptor of the file that was opened by one? A file that is mapped keeps its number. */
bool image_is_of(const struct image *img, int fd);
/* image_open_fd with only identity, segments, unwind rows and interpreter data; nothing else is
 * read or checked, so it has no names and no lines. */
int image_open_rows_fd(int fd, struct image **out, struct err *e);
/* The same over bytes that the caller keeps alive. Pure: for tests and fuzzing. */
int image_open_bytes(const void *data, size_t len, struct image **out, struct err *e);
void image_close(struct image *img); /* NULL is fine */

const struct image_ident *image_ident(const struct image *img);
/* File offset -> virtual address through the loadable segments. false: no segment holds it. */
bool image_offset_to_vaddr(const struct image *img, uint64_t offset, uint64_t *vaddr);

struct image_exec {
	uint64_t vaddr, offset, size; /* of an executable segment: the part that is in the file */
};
/* The executable segments, `max` at most. Returns how many. */
size_t image_exec_segments(const struct image *img, struct image_exec *out, size_t max);
/* The file's own address of the first byte of an executable mapping of [offset, offset + len) of
 * the file. Mappings begin at a page, segments may not; two of them may share one: the segment that
 * holds most of the mapping decides. false: none holds any of it. */
bool image_exec_vaddr(const struct image_exec *segments, size_t n, uint64_t offset, uint64_t len,
		      uint64_t *vaddr);

/* The function that holds `vaddr`. false: none is known. Never a guess across a gap. */
bool image_symbol_at(const struct image *img, uint64_t vaddr, struct image_symbol *out);
size_t image_symbol_count(const struct image *img);
/* The i-th piece in order of address (a function that another one interrupts has several). false:
 * no such piece. */
bool image_symbol_get(const struct image *img, size_t i, struct image_symbol *out);

/* The unwind rows as they are published (format.h, condition 13): 8-aligned, borrowed. Only the
 * sizes were checked: who uses them trusts no number in them. false: the file has none. */
bool image_unwind(const struct image *img, const void **data, size_t *size);

/* How frames of a runtime are walked there (format.h, condition 15; `kind`: PYTHON, PHP, ...):
 * borrowed, 8-aligned; nothing of it was checked. false: the file holds none that is known. */
bool image_part(const struct image *img, uint32_t kind, const void **data, size_t *size);

#endif
