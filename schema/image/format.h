/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: the bytes of an image index. One file for one ELF file, written once by sonde-index,
 * mapped read-only by everybody else and searched in place. Little endian, position independent:
 * places are offsets from the file's first byte. A file of another version is refused as a whole
 * (it is only a cache: it will be made again).
 *
 *   header    struct image_header, 48 bytes
 *   table     `section_count` times struct image_section
 *   sections  each 8-aligned, inside the file, in any order, in no part overlapping header and
 *             table
 *
 * 1. magic and version are IMAGE_MAGIC and IMAGE_VERSION; total_size is the size of the file.
 * 2. The header's checksum = hash_wide(HASH_SEED, all bytes from `total_size` on, to the end of
 *    the table). Each section has its own, in the table: = hash_wide(HASH_SEED, its bytes and the
 *    zeros that fill it up to a multiple of 8). So a program that publishes a file's rows reads
 *    only these.
 * 3. A kind occurs in the table at most once. Readers skip the kinds they do not know; a section
 *    whose meaning changes gets a new kind. IDENT, SEGMENTS, SYMBOLS and STRINGS are always there.
 * 4. `stride` is the size of one element; a reader takes elements of exactly its own size, or
 *    refuses.
 * 5. STRINGS: each string once, NUL-terminated; the section's last byte is NUL; offset 0 is "".
 * 6. SYMBOLS: sorted by `start`, none overlaps the next, none is empty. Addresses are the file's
 *    own virtual ones, less `symbol_base` of the ident, so that they fit in 32 bits. A function
 *    that is interrupted by another one (a cold part placed inside, an assembler label with a
 *    size) is written as several pieces: `back` is the distance from the piece's start to the
 *    function's first byte, 0 in nearly all.
 * 7. SEGMENTS: the loadable segments in the order of the file's program headers.
 *
 * Where each address came from in the source (all three sections or none; how to ask: lines.h):
 * 8. LINE_FILES: for each source file the offset of its name in STRINGS. Files are numbered from
 *    1; 0 is "not known".
 * 9. LINES and INLINES are runs: a sorted list of addresses, where each row holds from its own
 *    address to the next row's. Stride 1; struct image_runs, then `block_count` struct
 *    image_block, then `rows_size` bytes of rows, then (INLINES) `nodes_size` bytes of nodes. A
 *    block holds at most IMAGE_BLOCK_ROWS rows and can be read alone: they begin `at` bytes into
 *    the rows and end where the next block's begin. Blocks are sorted by `start`, the address of
 *    their first row less `symbol_base`. Numbers are LEB128: unsigned `u`, zigzag (0, -1, 1, -2,
 *    ...) `z`.
 * 10. A row of LINES: one byte, then the numbers that it announces, in this order. State at the
 *     block's begin: address `start`, file 0, line 0, column 0.
 *      bits 0-3  0..14: what is added to the address; 15: `u` follows, 15 + u is added
 *      bits 4-5  0: the line stays; 1: line + 1; 2: `z` follows, line + z; 3: from here on nothing
 *                is known (the state stays for the next row; bits 6 and 7 are 0)
 *      bit 6     `u` follows: the column;  bit 7  `u` follows: the file
 *    Line 0 with a file: code of that file that has no line.
 * 11. A row of INLINES: `u`, added to the address; `u`: 0: no function is inlined from here on,
 *     else `z` + 1, added to the node, which is the innermost inlined function's. State at the
 *     block's begin: `start`, node 0. A row with 0 leaves the state's node as it is.
 * 12. A node, known by its offset in the nodes: five `u`: how many bytes before it its caller's
 *     node lies (0: the caller is the physical function), its name (offset in STRINGS), and file,
 *     line and column of the call (0: not known). No chain is longer than IMAGE_INLINE_DEPTH_MAX.
 *
 * 13. UNWIND, not always there, stride 1: the rules to find a caller's frame, made to be published
 *     as they are. The publisher and the unwinder agree on their meaning elsewhere (the kernel's
 *     side knows nothing of this room); here only the sizes count. A head of IMAGE_UNWIND_HEAD
 *     bytes: u64 the address that rows count from, then u32: version, number of pages, of rules,
 *     of extensions, of rows, of what is not supported, flags, 0; then 8 bytes a page, 8 a rule,
 *     16 an extension, 4 a row, filled up to 8; nothing after that.
 *
 * 14. GO, where the file says that it is Go: one struct image_go_record. What is not known is 0;
 *     all but the version, the modules and what symbols name, where its table of functions could
 *     not be read (IMAGE_IDENT_GO is not set then).
 *
 * 15. PYTHON, PHP, RUBY, HOTSPOT, V8, PERL, BEAM, where the file holds such a runtime that is
 * known, stride 1: how to walk its frames and read what they say. As with UNWIND, its writer and
 * the walker agree on its meaning elsewhere (probes/runtimes).
 *
 * 16. TLS, where the file holds functions that read or write clear text inside TLS: struct
 *     image_tls_site, in no order, at most IMAGE_TLS_SITES. A probe at an entry site finds the
 *     arguments, one at a result site what the function returns (loaders/index/code/tlspart.h).
 *     Before attaching a probe, compare the bytes. IMAGE_TLS_BLIND is not a site: the file holds
 *     such a function, and no way to read it is known. IMAGE_TLS_RECORD: of functions that cipher
 *     one record (loaders/index/code/recordpart.h); check_value[0] is their enum image_tls_shape,
 *     and value[0] of an entry the place where the arguments in memory begin.
 */
#ifndef SONDE_IMAGE_FORMAT_H
#define SONDE_IMAGE_FORMAT_H

#include <assert.h>
#include <stdint.h>

#define IMAGE_MAGIC   "SONDEIDX"
#define IMAGE_VERSION 16u

/* More sections no file has. */
#define IMAGE_SECTIONS_MAX 64

/* The longest name kept, without NUL; longer ones end in "...". */
#define IMAGE_NAME_MAX 8191

#define IMAGE_UNWIND_HEAD 40

enum image_section_kind {
	IMAGE_SECTION_IDENT = 1,
	IMAGE_SECTION_SEGMENTS = 2,
	IMAGE_SECTION_SYMBOLS = 3,
	IMAGE_SECTION_STRINGS = 4,
	IMAGE_SECTION_UNWIND = 16,
	IMAGE_SECTION_LINE_FILES = 17,
	IMAGE_SECTION_LINES = 18,
	IMAGE_SECTION_INLINES = 19,
	IMAGE_SECTION_GO = 20,
	IMAGE_SECTION_TLS = 23,
	IMAGE_SECTION_PYTHON = 24,
	IMAGE_SECTION_PHP = 25,
	IMAGE_SECTION_RUBY = 26,
	IMAGE_SECTION_HOTSPOT = 27,
	IMAGE_SECTION_V8 = 28,
	IMAGE_SECTION_PERL = 29,
	IMAGE_SECTION_BEAM = 30
};
#define IMAGE_PART_FIRST IMAGE_SECTION_PYTHON
#define IMAGE_PARTS      (IMAGE_SECTION_BEAM - IMAGE_PART_FIRST + 1)

struct image_header {
	char magic[8];
	uint32_t version;
	uint32_t section_count;
	uint64_t checksum;
	uint64_t total_size; /* the header's checksum begins here */
	uint64_t pad[2];     /* 0 */
};
static_assert(sizeof(struct image_header) == 48, "image_header");

struct image_section {
	uint32_t kind; /* enum image_section_kind */
	uint32_t stride;
	uint64_t offset;
	uint64_t size;
	uint64_t checksum;
};
static_assert(sizeof(struct image_section) == 32, "image_section");

#define IMAGE_IDENT_GO         1u /* names of Go's pclntab are in */
#define IMAGE_IDENT_DEBUG_FILE 2u /* names of a separate debug file are in */
/* there are lines, which were not read for this index: they are many */
#define IMAGE_IDENT_LINES_LATER 4u

struct image_ident_record {
	uint8_t build_id[64];
	uint32_t build_id_len;
	uint32_t flags; /* IMAGE_IDENT_* */
	uint64_t content_hash;
	uint64_t symbol_base;
	uint16_t machine;
	uint16_t pad;
	uint32_t lines_note; /* offset in STRINGS: why lines are missing or not complete, for
				people; 0: nothing to say */
};
static_assert(sizeof(struct image_ident_record) == 96, "image_ident_record");

#define IMAGE_SEGMENT_EXEC 1u

struct image_segment {
	uint64_t vaddr;
	uint64_t offset;
	uint64_t file_size;
	uint64_t mem_size;
	uint32_t flags; /* IMAGE_SEGMENT_* */
	uint32_t pad;
};
static_assert(sizeof(struct image_segment) == 40, "image_segment");

/* Variables of Go's runtime. Stored: never renumbered. */
enum image_go_variable {
	IMAGE_GO_MBUCKETS, /* profile buckets: heap, mutex, block */
	IMAGE_GO_XBUCKETS,
	IMAGE_GO_BBUCKETS,
	IMAGE_GO_MEM_PROFILE_RATE,   /* bytes a sample; 0: off */
	IMAGE_GO_BLOCK_PROFILE_RATE, /* CPU ticks */
	IMAGE_GO_MUTEX_PROFILE_RATE, /* one contention in this many */
	IMAGE_GO_MPROF_CYCLE,        /* Go 1.19 on; before: in mProf */
	IMAGE_GO_MPROF,              /* to Go 1.18 */
	IMAGE_GO_ALLGS,
	IMAGE_GO_ALLGLEN,
	IMAGE_GO_ALLGPTR, /* Go 1.16 on */
	IMAGE_GO_BUILD_VERSION,
	IMAGE_GO_TICKS,         /* CPU ticks a second, and from what they are found */
	IMAGE_GO_VARIABLES = 16 /* room in the record */
};

#define IMAGE_GO_CGO 1u /* built with cgo */

struct image_go_record {
	char version[64];    /* "go1.26.8", as the program itself says; cut, and NUL-padded */
	char main_path[120]; /* the main module, "example.org/server"; as above */
	char main_version[40];
	uint32_t generation; /* of the pclntab: 2, 16, 18, 20 */
	uint32_t flags;      /* IMAGE_GO_* */
	uint64_t text_start; /* Go's functions; the file's own virtual addresses, as all that follow
			      */
	uint64_t text_end;
	uint64_t pclntab;
	uint64_t module_data;
	uint64_t bss_start; /* variables that begin as 0, with and without pointers */
	uint64_t bss_end;
	uint64_t from_code; /* bit 1 << variable: no symbol names it; instructions of the runtime
			       use it as that */
	uint64_t variables[IMAGE_GO_VARIABLES]; /* by enum image_go_variable */
};
static_assert(sizeof(struct image_go_record) == 416, "image_go_record");

/* Stored: never renumbered. */
enum image_tls_library {
	IMAGE_TLS_OPENSSL = 1,
	IMAGE_TLS_GNUTLS = 2,
	IMAGE_TLS_GO = 3,
	IMAGE_TLS_RUSTLS = 4,
	IMAGE_TLS_BORINGSSL = 5
};
enum image_tls_operation { IMAGE_TLS_READ = 1, IMAGE_TLS_WRITE = 2 };
enum image_tls_role {
	IMAGE_TLS_BLIND = 0,
	IMAGE_TLS_ENTRY = 1,
	IMAGE_TLS_RESULT = 2,
	IMAGE_TLS_FORGET =
		3 /* the connection in args[0] is no more: another one may get its address */
};
enum image_tls_result {
	IMAGE_TLS_LENGTH =
		1, /* value[0], with value[1] added if there is one: > 0: that many bytes */
	IMAGE_TLS_POINTER = 2, /* the same > 0: it went well, and args[3] of the entry points to the
				  number of bytes (u64) */
	IMAGE_TLS_PAIR = 3,  /* value[0] is 0: it went well, and value[1] is the number of bytes */
	IMAGE_TLS_RECORD = 4 /* succeeds if value[0] is 1, or without a value */
};
enum image_tls_shape {
	IMAGE_TLS_SEAL_SCATTER = 1,
	IMAGE_TLS_SEAL = 2,
	IMAGE_TLS_OPEN = 3,
	IMAGE_TLS_OPEN_GATHER = 4,
	IMAGE_TLS_RING = 5
};
enum image_tls_place {
	IMAGE_TLS_NOWHERE = 0,
	IMAGE_TLS_REGISTER = 1,
	IMAGE_TLS_STACK = 2,
	IMAGE_TLS_NUMBER = 3
};
enum image_tls_when { IMAGE_TLS_ALWAYS = 0, IMAGE_TLS_TAKEN = 1, IMAGE_TLS_NOT_TAKEN = 2 };

#define IMAGE_TLS_STRIPPED 1u /* check_value[0] of BLIND: without symbols nothing was found */

#define IMAGE_TLS_SITES  128u
#define IMAGE_TLS_NO_REG 0xffu

struct image_tls_value {
	uint8_t place; /* enum image_tls_place */
	uint8_t reg;   /* the processor's number */
	uint8_t bytes; /* 4: a signed number of 32 bits; 8 */
	uint8_t pad;
	int32_t at; /* STACK: from rsp there; NUMBER: the number */
};

struct image_tls_site {
	uint64_t offset;                          /* in the file */
	uint8_t bytes[8];                         /* the instruction's first */
	uint8_t length;                           /* of the instruction */
	uint8_t library, operation, role, result; /* enum image_tls_* */
	uint8_t when;      /* enum image_tls_when: only if the jcc there goes so */
	uint8_t condition; /* of the jcc, 0 to 15 */
	uint8_t slow;      /* the kernel does not emulate it: a hit costs a debug trap */
	uint8_t args[4];   /* entry: the registers of connection, buffer, its size, pointer to the
			      number of bytes; IMAGE_TLS_NO_REG: none */
	uint8_t check_reg[2], check_value[2]; /* entry: only if the lower half of this register is
						 that; IMAGE_TLS_NO_REG: in any case */
	struct image_tls_value value[2];      /* result */
};
static_assert(sizeof(struct image_tls_site) == 48, "image_tls_site");

struct image_symbol_record {
	uint32_t start; /* of this piece, from symbol_base */
	uint32_t size;  /* of this piece, never 0 */
	uint32_t name;  /* offset in STRINGS */
	uint32_t back;  /* start - back is the function's first byte */
};
static_assert(sizeof(struct image_symbol_record) == 16, "image_symbol_record");

#define IMAGE_BLOCK_ROWS       64
#define IMAGE_INLINE_DEPTH_MAX 64

struct image_runs {
	uint32_t block_count;
	uint32_t row_count; /* in all blocks together */
	uint32_t rows_size;
	uint32_t nodes_size; /* LINES: 0 */
};
static_assert(sizeof(struct image_runs) == 16, "image_runs");

struct image_block {
	uint32_t start;
	uint32_t at;
};
static_assert(sizeof(struct image_block) == 8, "image_block");

#endif
