/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* python_check: what the test's BPF program reports for each sample. */
#ifndef TESTS_UNIT_PROBES_PYTHON_CHECK_BPF_H
#define TESTS_UNIT_PROBES_PYTHON_CHECK_BPF_H

#define PYTHON_CHECK_SAMPLES 1024
#define PYTHON_CHECK_FRAMES  64

struct python_check_sample {
	__u32 n;    /* frames */
	__u32 step; /* enum python_step that ended it */
	__u64 code[PYTHON_CHECK_FRAMES];
};

struct python_check {
	__u32 tgid;
	__u32 taken;
	__u64 thread; /* its state */
	struct python_check_sample samples[PYTHON_CHECK_SAMPLES];
};

#endif
