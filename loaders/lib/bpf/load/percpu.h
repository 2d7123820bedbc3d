/* SPDX-License-Identifier: Apache-2.0 */
/* percpu: sums of the counters that programs keep per CPU. */
#ifndef SONDE_LIB_BPF_PERCPU_H
#define SONDE_LIB_BPF_PERCPU_H

#include <stddef.h>
#include <stdint.h>

/* Sums element 0 of the per-CPU map `fd`, whose value is `size` bytes of u64, into `sum`; all 0 if
 * it cannot be read. */
void percpu_sum(int fd, void *sum, size_t size);
/* The same of element `key`. */
void percpu_sum_at(int fd, uint32_t key, void *sum, size_t size);

#endif
