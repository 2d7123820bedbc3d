/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cpu: the wire struct of one CPU sample is a stack_event and its frames; this is the program's configuration. */
#ifndef SONDE_PROBES_CPU_H
#define SONDE_PROBES_CPU_H

#include "probes/stack.h"

/* The program's own tally, per CPU, index of the array map `tally`. */
enum cpu_tally {
	CPU_TALLY_SEEN = 0,     /* samples that were in the capture's scope */
	CPU_TALLY_SENT = 1,     /* of those, put into the ring */
	CPU_TALLY_RING_FULL = 2,/* of those, lost: no room */
	CPU_TALLY_N = 3
};

#endif
