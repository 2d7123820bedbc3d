/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap: names of a process's JIT code, from the file its runtime keeps: a jitdump (jitdump.h),
 * or /tmp/perf-PID.map inside the process's own root, PID as its innermost pid namespace counts.
 * Lines "START SIZE NAME": START and SIZE hexadecimal (0x allowed), absolute addresses, NAME the
 * rest of the line, any bytes. The file only grows; code is moved and memory used again, so that of
 * overlapping ranges the later line holds.
 *
 * The parser is a pure function. The file is a stranger's: it is opened in the process's root, must
 * be a regular file that belongs to the process's user or root, and is read up to PERFMAP_FILE_MAX;
 * what is longer is cut at the last whole line. Names are kept up to PERFMAP_NAME_MAX bytes.
 */
#ifndef SONDE_HOST_PERFMAP_H
#define SONDE_HOST_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERFMAP_FILE_MAX (64u << 20)
#define PERFMAP_NAME_MAX 4096

struct perfmap;

struct perfmap_entry {
	const char *name; /* borrowed from the map, NUL-terminated, bytes as the file has them */
	uint64_t start;   /* of the line's range: the function's first byte */
	uint64_t size;
	const char *file; /* borrowed; NULL: not known (a perf map does not say) */
	uint32_t line;    /* 0: not known */
};

/* A place in the source, from this address on to the next place's. */
struct perfmap_place {
	uint64_t addr;
	const char *file;
	uint32_t line;
};

/* Pure. Malformed lines (no name, size 0, a range past the end of the address space) are skipped
 * and counted. */
void perfmap_parse(const char *data, size_t len, struct perfmap **out);
void perfmap_free(struct perfmap *m); /* NULL is fine */
/* The same from another format: ranges in the order in which they came to hold, then once
 * perfmap_end. `name` of `len` bytes, 0: what was there has no name any more. `places` (may be
 * NULL): of the function as it was compiled, at `base`; it runs at `start`. false: the range is
 * none. */
struct perfmap *perfmap_begin(void);
bool perfmap_add(struct perfmap *m, uint64_t start, uint64_t size, const char *name, size_t len,
		 const struct perfmap_place *places, size_t n, uint64_t base);
void perfmap_end(struct perfmap *m);
bool perfmap_find(const struct perfmap *m, uint64_t addr, struct perfmap_entry *out);
size_t perfmap_count(const struct perfmap *m); /* well-formed lines */
size_t perfmap_skipped(const struct perfmap *m);
size_t perfmap_bytes(const struct perfmap *m); /* memory it holds */
/* Step through the ranges that hold after overlaps are resolved, in order; false: no more. For
 * tests. */
bool perfmap_range(const struct perfmap *m, size_t i, uint64_t *start, uint64_t *end,
		   const char **name);

/* What the file was when it was read: to see whether it has grown or is another one. */
struct perfmap_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
};
/* Read the map of process `pid` (in our pid namespace), `nspid` in its own, running as `uid`. With
 * `stamp` (in: of the last reading, out: of this one): -EALREADY when nothing has changed since.
 * Other errors: -ENOENT there is none, -EPERM foreign owner, -ENOTSUP no regular file, -EFBIG above
 * 1 GiB, -errno of the system. */
int perfmap_read(uint32_t pid, uint32_t nspid, uid_t uid, struct perfmap_stamp *stamp,
		 struct perfmap **out);
/* The same of the jitdump at `path`, one of the files that the process has mapped (jitdump_path).
 * Also -EBADMSG: it is none, or of another process. */
int perfmap_read_dump(uint32_t pid, uint32_t nspid, uid_t uid, const char *path,
		      struct perfmap_stamp *stamp, struct perfmap **out);
/* The one or the other: a jitdump where there is one that can be read. `paths`: what the process
 * has mapped. *dump: it was a jitdump; may be NULL. */
int perfmap_read_any(uint32_t pid, uint32_t nspid, uid_t uid, const char *const *paths, size_t n,
		     struct perfmap_stamp *stamp, struct perfmap **out, bool *dump);

#endif
