/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexer: one ELF file (and its debug files) in, the bytes of an image index out. It uses only its
 * sources: no path, no /proc, no clock but its own CPU time.
 *
 * Symbols come from: .symtab; if the file has none, or one without functions, the separate debug
 * file (by build-id, which must be the same, then by debuglink, whose CRC must match), then
 * .gnu_debugdata; always .dynsym, PLT stubs and Go's pclntab. Lines and inlined functions come from
 * the file's .debug_info, else from the separate debug file's.
 */
#ifndef SONDE_INDEX_INDEXER_H
#define SONDE_INDEX_INDEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/index/elf/strtab.h"
#include "schema/base/err.h"
#include "schema/image/image.h"

/* Lines and inlined functions (DWARF): */
enum index_lines {
	INDEX_LINES_SOON, /* where the debug sections have at most INDEX_LINES_SOON_BYTES; else
			     `lines_later` says so */
	INDEX_LINES_ALL,
	INDEX_LINES_NONE,
	INDEX_LINES_LOST /* none, and the index says that reading them failed */
};

#define INDEX_LINES_SOON_BYTES (2u << 20)
#define INDEX_LINES_SOON_NS    2000000000ll /* CPU time since the start until when they are read */
#define INDEX_LINES_ALL_NS     45000000000ll

struct index_result {
	char key[IMAGE_KEY_MAX];
	void *data; /* own: the index (free it) */
	size_t size;
	size_t symbol_count;
	bool lines_later; /* there are lines, which INDEX_LINES_ALL would read */
};

/* From the parent: functions that find debug files (each returns a descriptor, which the indexer
 * closes, or -1; each may be NULL), and what to make. */
struct index_finder {
	void *ctx;
	int (*by_build_id)(void *ctx, const uint8_t *id, size_t len);
	int (*by_debuglink)(void *ctx, const char *name, uint32_t n); /* the n-th candidate */
	int (*by_altlink)(void *ctx, const char *name, const uint8_t *id, size_t len);
	/* NULL, or what takes an index that has the rows and no symbols, as soon as there is one
	 * (borrowed for the call). 0: go on, with lines as *lines says, which it may change. Else:
	 * its error ends the run. */
	int (*rows_made)(void *ctx, const struct index_result *r, enum index_lines *lines);
	enum index_lines lines;
};

/* -ENOEXEC: no ELF file that runs here; -EFBIG: more than an index may hold; -ENOMEM, -ESTALE, -EIO
 * ... */
int indexer_run_fd(int fd, const struct index_finder *finder, struct index_result *out,
		   struct err *e);
/* The same over bytes; for tests and fuzzing. */
int indexer_run_bytes(const void *data, size_t len, const struct index_finder *finder,
		      struct index_result *out, struct err *e);

#endif
