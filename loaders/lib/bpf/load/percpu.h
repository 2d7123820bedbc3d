/* SPDX-License-Identifier: Apache-2.0 */
/* percpu: the numbers that programs count by CPU, added up. */
#ifndef SONDE_LIB_BPF_PERCPU_H
#define SONDE_LIB_BPF_PERCPU_H

#include <stddef.h>

/* Sums element 0 of the per-CPU map `fd`, whose value is `size` bytes of u64, into `sum`; all 0
 * where it cannot be read. */
void percpu_sum(int fd, void *sum, size_t size);

#endif
