/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fdinside: the file behind a descriptor of a process that never had more than NR_OPEN_DEFAULT open
 * at a time. It has them in an array inside its files_struct: the verifier trusts each of those,
 * and they are loaded as from the program's own memory, if the index is a constant (so the
 * descriptor is found by comparisons, some six).
 */
#ifndef SONDE_PROBES_LIB_FDINSIDE_BPF_H
#define SONDE_PROBES_LIB_FDINSIDE_BPF_H

#include <bpf/bpf_helpers.h>

#include "probes/lib/kern.h"

#define FD_AT(n_)                          \
	case n_:                           \
		file = open->fd_array[n_]; \
		break;
#define FD_AT_4(n_)  FD_AT(n_) FD_AT(n_ + 1) FD_AT(n_ + 2) FD_AT(n_ + 3)
#define FD_AT_16(n_) FD_AT_4(n_) FD_AT_4(n_ + 4) FD_AT_4(n_ + 8) FD_AT_4(n_ + 12)

/* Where fdt->max_fds is NR_OPEN_DEFAULT. NULL: none. */
static __always_inline struct file *fd_inside(struct files_struct *open, __u32 fd)
{
	struct file *file = NULL;

	switch (fd) {
		FD_AT_16(0)
		FD_AT_16(16)
		FD_AT_16(32)
		FD_AT_16(48)
	}
	return file;
}

#endif
