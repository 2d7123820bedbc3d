/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oomlog: what the kernel's log says of an out-of-memory kill. Pure, over the log's text as
 * syslog(2) returns it: lines "<6>[ 12.345678] ...".
 *
 * The lines of one kill (mm/oom_kill.c, mm/memcontrol.c; 4.19 to 6.18), in this order; each but the
 * last may be missing, since the kernel limits their rate:
 *
 *   tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
 *   memory: usage 65536kB, limit 65536kB, failcnt 25
 *   [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
 *   [   1234]     0  1234    17000    16000   180224        0             0 tail
 *   oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=ID,mems_allowed=0,oom_memcg=/docker/ID,task_memcg=/docker/ID,task=tail,pid=1234,uid=0
 *   Memory cgroup out of memory: Killed process 1234 (tail) total-vm:68000kB, anon-rss:64000kB,
 * file-rss:4kB, shmem-rss:0kB, ...
 *
 * The table's columns are found by its head: 6.8 adds rss_anon, rss_file and rss_shmem. Its numbers
 * are pages, swapents too.
 */
#ifndef SONDE_HOST_FAMILY_OOMLOG_H
#define SONDE_HOST_FAMILY_OOMLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* the kernel lists all that may be killed; those that hold most are kept */
#define OOMLOG_TASKS 512
#define OOMLOG_COMM  16
#define OOMLOG_PATH  1024

struct oomlog_task {
	uint32_t pid;
	char comm[OOMLOG_COMM];
	uint64_t rss_bytes, swap_bytes;
};

struct oomlog {
	uint32_t pid; /* the killed process */
	char comm[OOMLOG_COMM], asked_by[OOMLOG_COMM];
	char cgroup[OOMLOG_PATH]; /* the cgroup whose limit was met; "": the host's memory, or
				     unknown */
	char victim_cgroup[OOMLOG_PATH];
	bool has_limit, has_sizes,
		is_told; /* limit and usage; anon, file, shmem; is_told: whose limit it was */
	uint64_t limit_bytes, usage_bytes, anon_bytes, file_bytes, shmem_bytes;
	struct oomlog_task tasks[OOMLOG_TASKS];
	size_t n_tasks; /* those with most memory first */
};

/* The last kill of this process that the log has. False: none. */
bool oomlog_find(const char *log, size_t len, uint32_t pid, uint32_t page, struct oomlog *out);

#endif
