/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* offcpu_file: the file behind a task's descriptor: from the array inside its files_struct where it
 * has one (fdinside.bpf.h), else by a helper, thrice 15 ns. */
#ifndef SONDE_PROBES_OFFCPU_FILE_BPF_H
#define SONDE_PROBES_OFFCPU_FILE_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/fdinside.bpf.h"
#include "probes/offcpu_load.bpf.h"

/* From the array inside: its file's mode, 0: none. */
static __always_inline __u32 inside_mode(struct files_struct *open, __u32 fd)
{
	struct file *file = fd_inside(open, fd);
	struct inode *inode;

	inode = file ? file->f_inode : NULL;
	return inode ? inode->i_mode : 0;
}

/* NULL: none. */
static __always_inline struct file *file_read(struct task_struct *task, __u32 fd)
{
	struct files_struct *open = LOAD(task, files);
	struct fdtable *table = open ? LOAD(open, fdt) : NULL;
	struct file *file = NULL;

	if (!table || fd >= LOAD(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), LOAD(table, fd) + fd))
		return NULL;
	return file;
}

static __always_inline __u32 file_mode(struct task_struct *task, __u32 fd)
{
	struct file *file;

	if (!plain) {
		struct files_struct *open = task->files;
		struct fdtable *table = open ? open->fdt : NULL;

		if (table && table->max_fds == NR_OPEN_DEFAULT)
			return inside_mode(open, fd);
	}
	file = file_read(task, fd);
	return file ? BPF_CORE_READ(file, f_inode, i_mode) : 0;
}

#endif
