/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_usage: what processes or containers used in a range other than CPU time: as family host
 * recorded it (views process_stats and container_stats), and for processes the bytes of their
 * connections, as family net did (view flows): sums of what was read, written, received and sent,
 * and how much memory they had at its end; of GPUs the same, as family gpu recorded it (view
 * gpu_process_stats); how long disks took for their requests, and calls until files were on them,
 * as family disk did (views block_stats and fsyncs).
 *
 * The kernel adds what a process read and wrote to its parent's when the parent waits for its end:
 * that is taken off again, where both have rows.
 *
 * Memory is that of the last reading before the range's end, where that is at most
 * PROCESS_USAGE_PROCESS_S or PROCESS_USAGE_CONTAINER_S before its beginning: what does not change
 * has a row only that often (loaders/host).
 */
#ifndef SONDE_TOOLS_PROCESS_USAGE_H
#define SONDE_TOOLS_PROCESS_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"
#include "tools/select/select.h"

#define PROCESS_USAGE_PROCESS_S   610
#define PROCESS_USAGE_CONTAINER_S 70
#define PROCESS_USAGE_GPU_S       70

struct process_usage_row {
	char *name, *id;         /* of a container; "" of a process */
	struct fold_process who; /* of a process: what it is; ns and samples are 0 */
	int64_t at;              /* of the last reading, seconds since 1970 */
	uint64_t cpu_us, read_bytes, write_bytes, rx_bytes, tx_bytes, throttled_us;
	uint64_t mem, mem_limit; /* bytes; of a process what is in memory; limit 0: none */
	uint64_t held; /* what the kernel cannot reclaim: without files' pages, with what is in
			  swap; answers about memory are ranked by it */
	uint64_t file; /* of a process: files' pages in mem, at the last reading of them, file_at */
	int64_t file_at;
	uint64_t gpu_us, gpu_mem;  /* kernels of its ran on GPUs; bytes that it has of them */
	uint64_t gpu_segment;      /* that gpu_mem is of */
	uint64_t disk_us, sync_us; /* its requests of disks, made and on the way, of those that lie
				      on no other; its calls of fsync and their like */
	bool has_mem, has_io, has_net, has_gpu, has_disk;
	bool io_of_processes; /* of a container whose cgroup counted none: its processes' sum */
};

struct process_usage {
	struct process_usage_row *rows;
	size_t n;
	bool known;      /* it was recorded: what is not there used nothing */
	bool net_known;  /* family net was recorded, and of containers family host was not */
	bool gpu_known;  /* family gpu was recorded */
	bool disk_known; /* family disk was recorded */
	bool of_containers;
};

/* None of it is no error. Release in any case. */
int process_usage_processes(const struct selection *sel, struct process_usage *out, struct err *e);
int process_usage_containers(const struct selection *sel, struct process_usage *out, struct err *e);
void process_usage_release(struct process_usage *u);

#endif
