/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openin: opens a file whose path is untrusted, below a root whose content is untrusted.
 *
 * Every path is resolved inside the given root (openat2, RESOLVE_IN_ROOT: an absolute symlink or
 * ".." stays inside; magic links are refused). The file is first opened with O_PATH, which has no
 * effect on it; only if it is regular and not larger than the limit is it opened for reading. So a
 * FIFO does not block, a device is not touched, and a sparse file of 100 GB is refused by its size.
 *
 * A file system may not answer at all (FUSE, NFS): then a thread does the opening and is abandoned
 * after OPENIN_WAIT_MS: -ETIMEDOUT; the caller should not use that root again. While
 * OPENIN_STUCK_MAX threads are waiting, no more are started: -EBUSY. A file that can be opened
 * without waiting (localfs.h, its path in the kernel's caches) needs no thread.
 *
 * All return a descriptor (O_RDONLY | O_NONBLOCK | O_CLOEXEC), or -errno: -ENOTSUP: not a regular
 * file, -EFBIG: larger than the limit, -ESTALE: not the wanted file. `st` may be NULL.
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
/* The same, but a link in place of the file itself is refused: -ENOTSUP. */
int openin_no_link(int root_fd, const char *path, uint64_t max_bytes, struct stat *st);
/* The file mapped at [start, end), through /proc/PID/map_files; also deleted files and memfds.
 * -ENOENT: no mapping has exactly these bounds. Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
int openin_map_file(uint32_t pid, uint64_t start, uint64_t end, uint64_t max_bytes,
		    struct stat *st);
/* The file behind an O_PATH descriptor, which the caller keeps. */
int openin_held(int path_fd, uint64_t max_bytes, struct stat *st);
/* The generation of an open file's inode: it differs when another file gets the same number. `st`
 * is the file's. -ENOTSUP: the file system is not local, or has none. */
int openin_generation(int fd, const struct stat *st, uint32_t *out);
/* The birth time of an open file, UTC. -ENOTSUP: the file system has none. */
int openin_born(int fd, int64_t *out_ns);
/* The same for a path below a root, if the kernel has it in its caches and the inode number
 * matches; does not block. -errno. */
int openin_cached_born(int root_fd, const char *path, uint64_t ino, int64_t *out_ns);
/* The same; *pin: a descriptor that opens nothing, and while the caller has it no other file gets
 * this inode number; -1: none, because the file is on another file system than the root, which may
 * have to be unmounted. */
int openin_cached_pin(int root_fd, const char *path, uint64_t ino, int64_t *out_ns, int *pin);
/* The first `size` bytes, or fewer if the file has shrunk; read, not mapped, so truncation is
 * harmless. The caller frees *out, which has a NUL after *len bytes. */
int openin_read(int fd, size_t size, char **out, size_t *len);
/* A message for people: "not a regular file". */
const char *openin_reason(int code);

#endif
