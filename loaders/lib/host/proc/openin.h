/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openin: opening a file that a stranger named, below a root that a stranger may have filled.
 *
 * Every path is resolved inside the root given (openat2, RESOLVE_IN_ROOT: an absolute symlink or
 * ".." leads nowhere else; magic links are refused). The file is first taken with O_PATH, which has
 * no effect on what it is; only when it turns out to be regular and not larger than the cap is it
 * opened for reading. So a FIFO does not block, a device is not touched, a sparse file of 100 GB is
 * refused by its size.
 *
 * A file system may not answer at all (FUSE, NFS): then the opening waits in a thread of its own,
 * which is left alone after OPENIN_WAIT_MS: -ETIMEDOUT, and the caller does well not to ask that
 * root again. With OPENIN_STUCK_MAX threads waiting nothing more is opened so: -EBUSY. What can be
 * opened without waiting (localfs.h, its path in the kernel's caches) needs no thread.
 *
 * All return a descriptor (O_RDONLY | O_NONBLOCK | O_CLOEXEC), or -errno: -ENOTSUP: not a regular
 * file, -EFBIG: larger than the cap, -ESTALE: it is another file than wanted. `st` may be NULL.
 */
#ifndef SONDE_HOST_OPENIN_H
#define SONDE_HOST_OPENIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define OPENIN_MAX_BYTES (4ull << 30)
#define OPENIN_WAIT_MS   500
#define OPENIN_STUCK_MAX 16

/* The root directory of a process, for openin(). */
int openin_root(uint32_t pid);
int openin(int root_fd, const char *path, uint64_t max_bytes, struct stat *st);
/* The very file mapped at [start, end), by /proc/PID/map_files; also deleted files and memfds.
 * -ENOENT: no mapping has exactly these bounds. Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
int openin_map_file(uint32_t pid, uint64_t start, uint64_t end, uint64_t max_bytes,
		    struct stat *st);
/* The file that an O_PATH descriptor stands for; it stays the caller's. */
int openin_held(int path_fd, uint64_t max_bytes, struct stat *st);
/* The generation of an open file's inode: another file that got its number has another one. `st` is
 * the file's. -ENOTSUP: its file system is not one that says so by itself. */
int openin_generation(int fd, const struct stat *st, uint32_t *out);
/* When an open file came to be, UTC. -ENOTSUP: its file system does not say. */
int openin_born(int fd, int64_t *out_ns);
/* The same of the file at a path below a root, if its path is in the kernel's caches and it has
 * that number; waits for nobody. -errno. */
int openin_cached_born(int root_fd, const char *path, uint64_t ino, int64_t *out_ns);
/* The first `size` bytes (fewer where it has become shorter), read, not mapped: a file that is
 * truncated meanwhile only ends early. *out is the caller's (free), with a NUL after *len bytes. */
int openin_read(int fd, size_t size, char **out, size_t *len);
/* Why, for people: "not a regular file". */
const char *openin_reason(int code);

#endif
