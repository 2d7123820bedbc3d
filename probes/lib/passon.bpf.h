/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* passon: what a program at a tracepoint's perf event returns. With 0 the kernel hides the hit from
 * all others who count or record that tracepoint by perf (perf_trace_run_bpf_submit). */
#ifndef SONDE_PROBES_PASSON_BPF_H
#define SONDE_PROBES_PASSON_BPF_H

#define PASS_ON 1

#endif
