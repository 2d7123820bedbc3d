/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: what the kernel says of single pages of a process: /proc/PID/pagemap, 8 bytes a page
 * (Documentation/admin-guide/mm/pagemap.rst): bit 63 in memory, bit 62 in swap, bit 61 of a file or
 * shared, bits 0 to 54 the number of the page frame where CAP_SYS_ADMIN may see it. Whether it is
 * part of a huge page /proc/kpageflags says of the frame (bit 22, THP, and bit 17, HUGE).
 */
#ifndef SONDE_MEM_PAGES_H
#define SONDE_MEM_PAGES_H

#include <stddef.h>
#include <stdint.h>

#define PAGES_HUGE 512 /* small pages in a huge one */

enum pages_state {
	PAGES_GONE, /* nothing is there any more */
	PAGES_OWN,  /* the process's alone, in memory or in swap */
	PAGES_OTHER /* of a file, or shared */
};

/* /proc/PID/pagemap, to be closed. -errno. */
int pages_open(uint32_t tgid);
/* The entry of a page, address / 4096. 0: nothing is there, or it cannot be asked for. */
uint64_t pages_ask(int fd, uint64_t page);
/* Of `n` pages in ascending order. */
void pages_ask_all(int fd, const uint64_t *pages, size_t n, uint64_t *said);
enum pages_state pages_state(uint64_t said);
/* The number of its frame; 0: it has none (it is in swap), or this process may not know. */
uint64_t pages_frame(uint64_t said);
/* How many small pages the frame is one of: 1, or PAGES_HUGE. */
uint32_t pages_size(uint64_t said);

struct pages_usage {
	uint64_t own;  /* bytes: private memory, RssAnon */
	uint64_t swap; /* bytes */
};
/* Pure: the bytes of /proc/PID/status. 0 or -EBADMSG. */
int pages_usage_parse(const char *data, size_t len, struct pages_usage *out);
int pages_usage(uint32_t tgid, struct pages_usage *out);

#endif
