/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc: /proc/PID as numbers. The parsers are pure functions over (bytes, len): the bytes come from
 * the kernel, but comm, command line and paths in them are untrusted (a comm may contain ')', a
 * newline and invalid UTF-8). Strings are returned as they are; make them valid before you show
 * them.
 *
 * Parsers return 0 or -EBADMSG and leave the output unchanged on failure; readers return 0 or
 * -errno.
 */
#ifndef SONDE_HOST_PROC_H
#define SONDE_HOST_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_FILE_MAX (8u << 20) /* read no further than this in any file */

/* /proc/PID/stat (or task/TID/stat) */
struct proc_stat {
	uint32_t pid;
	char comm[64]; /* NUL-terminated; kernel threads may be longer than 15 bytes */
	char state;
	uint32_t ppid;
	uint32_t flags;        /* PF_*: PROC_PF_KTHREAD */
	uint64_t utime, stime; /* clock ticks */
	uint64_t n_threads;    /* an ended leader counts until all other threads have ended */
	uint64_t start_ticks;  /* since boot, clock ticks: proc_ticks_ns */
};
#define PROC_PF_KTHREAD 0x00200000u
int proc_parse_stat(const char *data, size_t len, struct proc_stat *out);

/* /proc/PID/status */
struct proc_status {
	uint32_t tgid, ppid;
	uint32_t uid; /* real */
	uint32_t euid;
	uint32_t nspid;    /* in the innermost pid namespace; the tgid if the kernel does not say */
	uint32_t ns_depth; /* how many numbers NSpid has, 0: no NSpid */
};
int proc_parse_status(const char *data, size_t len, struct proc_status *out);

/* One line of /proc/PID/maps. */
struct proc_map {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	bool read, write, exec, shared;
	bool deleted; /* the path ended in " (deleted)", which is cut off */
	const char
		*path; /* borrowed from the bytes, not terminated, still escaped ('\n' is "\012") */
	size_t path_len; /* 0: anonymous */
};
/* Step through the lines: *pos starts at 0. True: *out is the next well-formed line; malformed ones
 * are skipped. */
bool proc_next_map(const char *data, size_t len, size_t *pos, struct proc_map *out);
/* Undo the kernel's octal escapes (such as \012). `out` must have room for len + 1 bytes; returns
 * the length. */
size_t proc_unescape(const char *path, size_t len, char *out);

/* /proc/PID/cgroup: one path per hierarchy, borrowed from the bytes, not terminated; NULL: missing.
 */
struct proc_cgroup {
	const char *v2, *memory, *pids, *cpu, *systemd, *any;
	size_t v2_len, memory_len, pids_len, cpu_len, systemd_len, any_len;
};
int proc_parse_cgroup(const char *data, size_t len, struct proc_cgroup *out);
/* The most useful path (container_choose) of v2, memory, pids, cpu, systemd. Never NULL: at least
 * "/". */
const char *proc_cgroup_path(const struct proc_cgroup *cg, size_t *len);

uint64_t proc_ticks_ns(uint64_t ticks);
/* /proc/stat's "btime": when the host booted, UTC, in whole seconds. 0: missing. */
uint64_t proc_parse_btime(const char *data, size_t len);
uint64_t proc_btime(void);

/* Read /proc/PID/NAME, at most `max` bytes (the rest is cut), NUL-terminated; the caller frees
 * *out. */
int proc_read(uint32_t pid, const char *name, size_t max, char **out, size_t *len);
int proc_read_stat(uint32_t pid, struct proc_stat *out);
int proc_read_status(uint32_t pid, struct proc_status *out);
/* The most useful path, as above; `out` is NUL-terminated, cut at `size`. */
int proc_read_cgroup(uint32_t pid, char *out, size_t size);
/* readlink of /proc/PID/NAME; NUL-terminated; a " (deleted)" suffix is kept. */
int proc_readlink(uint32_t pid, const char *name, char *out, size_t size);

#endif
