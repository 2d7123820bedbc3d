/* SPDX-License-Identifier: Apache-2.0 */
/* selfmem: the memory that this process uses. */
#ifndef SONDE_HOST_SELFMEM_H
#define SONDE_HOST_SELFMEM_H

#include <stdint.h>

/* Resident bytes, and those of them that are private: anonymous memory. The image indexes and BPF
 * maps that it maps do not count: their pages are shared. 0 if the kernel does not say. */
void selfmem_read(uint64_t *rss, uint64_t *own);
/* The same for another process. */
void selfmem_read_of(uint32_t pid, uint64_t *rss, uint64_t *own);

#endif
