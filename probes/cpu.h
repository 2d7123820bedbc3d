/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cpu: the wire struct of one CPU sample is a stack_event and its frames. */
#ifndef SONDE_PROBES_CPU_H
#define SONDE_PROBES_CPU_H

#include "probes/lib/kstack.h"
#include "probes/lib/stack.h"
#include "probes/lib/tally.h"

#endif
