/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sideband: one record of perf's side-band, as numbers and borrowed strings. A pure function over
 * bytes; the layout is that of <linux/perf_event.h> for events opened with SIDEBAND_SAMPLE_TYPE and
 * sample_id_all (perfring.h does so): each record ends in { u32 pid, tid; u64 time; u32 cpu, zero }
 * = SIDEBAND_TAIL bytes.
 *
 * An MMAP2 record has device, inode and generation of the file. PERF_RECORD_MISC_MMAP_BUILD_ID in
 * its header says nothing: the kernel (6.18 still) sets it for an event of somebody else's that
 * asked for build-ids, and leaves it on the same mapping's record for ours.
 */
#ifndef SONDE_HOST_SIDEBAND_H
#define SONDE_HOST_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIDEBAND_TAIL     24
#define SIDEBAND_PATH_MAX 4096

enum sideband_type {
	SIDEBAND_MMAP = 1,
	SIDEBAND_COMM,
	SIDEBAND_FORK, /* a new thread or process */
	SIDEBAND_EXIT, /* a thread's end */
	SIDEBAND_LOST,
	SIDEBAND_CGROUP /* a cgroup came to be */
};

struct sideband_rec {
	enum sideband_type type;
	uint32_t pid, tid; /* of what the record is about: mmap, comm, fork (the child), exit */
	uint32_t cpu;
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	const char *name; /* mmap: path; comm; cgroup: path. Borrowed, NUL-terminated; NULL for the
			     others */
	uint32_t name_len;
	bool exec;          /* comm: by exec */
	uint32_t ppid;      /* fork */
	uint64_t lost;      /* lost: records */
	uint64_t cgroup_id; /* cgroup */
	/* mmap */
	uint64_t addr, len, pgoff;
	uint32_t prot, flags;
	uint32_t major, minor;
	uint64_t ino, ino_generation;
};

/* `data` is one whole record with its header. 0; -EBADMSG: not well-formed; -ENOENT: of a type that
 * is not ours. */
int sideband_parse(const void *data, size_t len, struct sideband_rec *out);

#endif
