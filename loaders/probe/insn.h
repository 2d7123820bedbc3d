/* SPDX-License-Identifier: Apache-2.0 */
/*
 * insn: what an instruction under a probe costs. The kernel carries out some itself (push, nop,
 * jump, call); of all others it runs a copy by single step, which takes ten times as long on a
 * virtual machine. x86-64. Pure.
 */
#ifndef SONDE_PROBE_INSN_H
#define SONDE_PROBE_INSN_H

#include <stdint.h>

#define INSN_EMULATED_NS 900
#define INSN_STEPPED_NS  14000

/* `bytes`: the code in hexadecimal digits, cut anywhere. */

/* How many bytes behind a function's begin its probe is set: behind its endbr64, if it has one. */
uint64_t insn_entry(const char *bytes);
/* ns of a hit: an estimate, measured on one virtual machine. */
uint64_t insn_price(const char *bytes);

#endif
