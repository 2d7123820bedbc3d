/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usdt: the arguments of a USDT probe, as its note has them: "-4@%eax 8@-24(%rbp) 8@$5", divided by
 * blanks: SIZE@PLACE, SIZE in bytes, below 0: signed. A place is a register, a constant, or memory
 * at a register and an offset. Others (an index register, a symbol, floating point) cannot be read.
 * Pure.
 */
#ifndef SONDE_PROBE_USDT_H
#define SONDE_PROBE_USDT_H

#include "loaders/probe/plan.h"

void usdt_args(const char *text, struct plan_notes *out);

#endif
