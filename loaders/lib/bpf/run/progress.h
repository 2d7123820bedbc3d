/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: messages of a capture to its parent, one JSON object a line on the descriptor of
 * --progress-fd. A line that only refreshes a display is skipped if the reader is slow; the others
 * wait for it a moment. If the reader closes its end, the capture ends.
 *
 *   {"event":"ready","run","segment","clock","hz"}   sampling; the store has the run
 *   {"event":"first","after_s"}                      the first sample is stored
 *   {"event":"progress","elapsed_s","left_s"|null,"samples","lost","self_cores","bpf_ns",
 *    "map_bytes","store_bytes","store_error"|null}   bpf_ns, map_bytes: run time of its own BPF
 *                                                    programs since they started, and the kernel's
 *                                                    charge for its own maps
 *   {"event":"finish","files","left_s"}               it has stopped, and waits for files that are
 * still read
 *   {"event":"happened","cause","why"}               something that sonded keeps its flight ring
 * for
 *   {"event":"exit","status"}                        the command after `--` has ended
 *   {"event":"done", ...}                            see family.c
 *   {"event":"error","what","fix","exit"}
 */
#ifndef SONDE_BPF_PROGRESS_H
#define SONDE_BPF_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>

struct progress {
	int fd;    /* -1: no reader */
	bool gone; /* the reader has closed its end */
};

void progress_init(struct progress *p, int fd);
/* Takes the reference of `line`. `must`: wait for a slow reader (at most 500 ms). */
void progress_send(struct progress *p, json_t *line, bool must);

#endif
