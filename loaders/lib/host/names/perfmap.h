/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap: names of a process's JIT code, from its runtime's file: a jitdump (jitdump.h), or
 * /tmp/perf-PID.map in the process's root, with PID as in its innermost pid namespace. Lines "START
 * SIZE NAME": START and SIZE hexadecimal (0x allowed), absolute addresses, NAME the rest of the
 * line, any bytes. The file only grows; code is moved and memory reused, so of overlapping ranges
 * the later line counts.
 *
 * The parser is a pure function. The file is untrusted: jitnames.h opens it, a process without
 * rights (jitreader.h) reads it, in pieces up to PERFMAP_FILE_MAX; a longer file is cut at the last
 * whole line. Names are kept up to PERFMAP_NAME_MAX bytes.
 *
 * What a map holds is bounded before it is allocated: by PERFMAP_BYTES, and by PERFMAP_LINES lines
 * looked at. A map over that is refused (-E2BIG) as a whole: without its later lines the earlier
 * ones may be wrong.
 */
#ifndef SONDE_HOST_PERFMAP_H
#define SONDE_HOST_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERFMAP_FILE_MAX (64u << 20)
#define PERFMAP_NAME_MAX 4096
#define PERFMAP_BYTES    (24u << 20) /* while it is made, too */
#define PERFMAP_LINES    (1u << 20)

struct perfmap;

struct perfmap_entry {
	const char *name; /* borrowed from the map, NUL-terminated, unchanged bytes */
	uint64_t start;   /* of the line's range: the function's first byte */
	uint64_t size;
	const char *file; /* borrowed; NULL: unknown (a perf map does not say) */
	uint32_t line;    /* 0: unknown */
};

/* A place in the source, for addresses from this one up to the next place's. */
struct perfmap_place {
	uint64_t addr;
	const char *file;
	uint32_t line;
};

/* Pure. Malformed lines (no name, size 0, a range past the end of the address space) are skipped
 * and counted. */
void perfmap_parse(const char *data, size_t len, struct perfmap **out);
void perfmap_free(struct perfmap *m); /* NULL is fine */
/* The same for another format: ranges in the order of their time, then perfmap_end once. `name` of
 * `len` bytes, 0: the range lost its name. `places` (may be NULL): of the function as compiled at
 * `base`; it runs at `start`. false: not a valid range. */
struct perfmap *perfmap_begin(void);
bool perfmap_add(struct perfmap *m, uint64_t start, uint64_t size, const char *name, size_t len,
		 const struct perfmap_place *places, size_t n, uint64_t base);
void perfmap_end(struct perfmap *m);
/* A line was left out because the map would have become too large: perfmap_add returned false. */
bool perfmap_full(const struct perfmap *m);
bool perfmap_find(const struct perfmap *m, uint64_t addr, struct perfmap_entry *out);
size_t perfmap_count(const struct perfmap *m); /* well-formed lines */
size_t perfmap_skipped(const struct perfmap *m);
size_t perfmap_bytes(const struct perfmap *m); /* memory it holds */
/* Step through the ranges after overlaps are resolved, in order; false: no more. For tests. */
bool perfmap_range(const struct perfmap *m, size_t i, uint64_t *start, uint64_t *end,
		   const char **name);

/* Reads the lines of an open file of `size` bytes, in pieces, up to PERFMAP_FILE_MAX; it may shrink
 * or grow meanwhile. -E2BIG: too many names; -errno of the system. */
int perfmap_stream(int fd, uint64_t size, struct perfmap **out);

/* From one process to another (perfmap_pack.c): a finished map as bytes, in the layout of this very
 * program. The one that takes them believes nothing of them. */
size_t perfmap_packed_size(const struct perfmap *m);
void perfmap_pack(const struct perfmap *m, void *out);
/* Pure. `block`, from malloc and of `len` bytes, is the map's afterwards. -EBADMSG: it is no map,
 * and stays the caller's. */
int perfmap_unpack(void *block, size_t len, struct perfmap **out);

#endif
