/* SPDX-License-Identifier: Apache-2.0 */
/* selfmem: what memory this process takes. */
#ifndef SONDE_HOST_SELFMEM_H
#define SONDE_HOST_SELFMEM_H

#include <stdint.h>

/* Bytes that are resident, and those of them that are its own alone: anonymous memory. The image
 * indexes and BPF maps that it maps are not: they are pages of others. 0 where the kernel does not
 * tell. */
void selfmem_read(uint64_t *rss, uint64_t *own);
/* The same of another process. */
void selfmem_read_of(uint32_t pid, uint64_t *rss, uint64_t *own);

#endif
