/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfmap: names of a process's JIT code, from the file its runtime keeps: /tmp/perf-PID.map inside the process's own
 * root, PID as its innermost pid namespace counts. Lines "START SIZE NAME": START and SIZE hexadecimal (0x allowed),
 * absolute addresses, NAME the rest of the line, any bytes. The file only grows; code is moved and memory used
 * again, so that of overlapping ranges the later line holds.
 *
 * The parser is a pure function. The file is a stranger's: it is opened in the process's root, must be a regular file
 * that belongs to the process's user or root, and is read up to PERFMAP_FILE_MAX; what is longer is cut at the last
 * whole line. Names are kept up to PERFMAP_NAME_MAX bytes.
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
	const char *name;   /* borrowed from the map, NUL-terminated, bytes as the file has them */
	uint64_t start;     /* of the line's range: the function's first byte */
	uint64_t size;
};

/* Pure. Malformed lines (no name, size 0, a range past the end of the address space) are skipped and counted. */
void perfmap_parse(const char *data, size_t len, struct perfmap **out);
void perfmap_free(struct perfmap *m); /* NULL is fine */
bool perfmap_find(const struct perfmap *m, uint64_t addr, struct perfmap_entry *out);
size_t perfmap_count(const struct perfmap *m);   /* well-formed lines */
size_t perfmap_skipped(const struct perfmap *m);
size_t perfmap_bytes(const struct perfmap *m);   /* memory it holds */
/* Step through the ranges that hold after overlaps are resolved, in order; false: no more. For tests. */
bool perfmap_range(const struct perfmap *m, size_t i, uint64_t *start, uint64_t *end, const char **name);

/* What the file was when it was read: to see whether it has grown or is another one. */
struct perfmap_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
};
/* Read the map of process `pid` (in our pid namespace), `nspid` in its own, running as `uid`. With `stamp` (in: of the
 * last reading, out: of this one): -EALREADY when nothing has changed since. Other errors: -ENOENT there is none, -EPERM
 * foreign owner, -ENOTSUP no regular file, -EFBIG above 1 GiB, -errno of the system. */
int perfmap_read(uint32_t pid, uint32_t nspid, uid_t uid, struct perfmap_stamp *stamp, struct perfmap **out);

#endif
