/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_file: the file behind a task's descriptor. A process that never had more than
 * NR_OPEN_DEFAULT open at a time has them in an array inside its files_struct: the verifier trusts
 * each of those, and they are loaded as from the program's own memory, if the index is a constant
 * (so the descriptor is found by comparisons, some six). All else is read by a helper, thrice 15
 * ns.
 */
#ifndef SONDE_PROBES_OFFCPU_FILE_BPF_H
#define SONDE_PROBES_OFFCPU_FILE_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/offcpu_load.bpf.h"

#define AT(n_)                             \
	case n_:                           \
		file = open->fd_array[n_]; \
		break;
#define AT_4(n_)  AT(n_) AT(n_ + 1) AT(n_ + 2) AT(n_ + 3)
#define AT_16(n_) AT_4(n_) AT_4(n_ + 4) AT_4(n_ + 8) AT_4(n_ + 12)

/* From the array inside: its file's mode, 0: none. */
static __always_inline __u32 inside_mode(struct files_struct *open, __u32 fd)
{
	struct file *file = NULL;
	struct inode *inode;

	switch (fd) {
		AT_16(0)
		AT_16(16)
		AT_16(32)
		AT_16(48)
	}
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
