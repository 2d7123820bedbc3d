/* SPDX-License-Identifier: Apache-2.0 */
/* regs: registers by name, as places in the kernel's struct pt_regs, which a program at a place in
 * code is called with. x86-64. Pure. */
#ifndef SONDE_PROBE_REGS_H
#define SONDE_PROBE_REGS_H

#include <stdint.h>

/* "rdi", also of its parts: "edi", "di", "dil"; -1: it is no register. */
int regs_named(const char *name);
/* The register of a C function's N-th argument, from 1 on; -1: it is not in one. */
int regs_argument(uint32_t n);
/* The same of Go from 1.17 on: integers, pointers, and parts of what has several words. */
int regs_go(uint32_t n);

#endif
