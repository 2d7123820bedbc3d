/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beam_layout: where an Erlang runtime (BEAM, OTP 24 and later with its JIT) keeps what names its
 * code. loaders/index makes one for each file that holds such a runtime, the section BEAM of its
 * index. All else is found in the process (loaders/lib/runtimes/beam).
 */
#ifndef SONDE_PROBES_RUNTIMES_BEAM_LAYOUT_H
#define SONDE_PROBES_RUNTIMES_BEAM_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define BEAM_FORMAT     2u /* of struct beam_layout */
#define BEAM_SCHEDULERS 3

/* Addresses are the file's own. */
struct beam_layout {
	__u32 format;         /* BEAM_FORMAT */
	__u32 version;        /* of OTP: 25 */
	__u64 active;         /* the_active_code_index: u32 */
	__u64 atoms;          /* erts_atom_table */
	__u64 exit;           /* beam_normal_exit: the code that a process returns to at its end */
	__u64 frames;         /* erts_frame_layout: u32, 0: no frame pointers */
	__u64 data, data_end; /* variables without initial values: the tables of ranges are there */
	__u64 schedulers[BEAM_SCHEDULERS]; /* erts_aligned_scheduler_data and the two of dirty
					      schedulers: pointers to arrays; 0: not known */
};

#endif
