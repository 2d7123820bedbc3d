/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: what the kernel says of single pages of a process: /proc/PID/pagemap, 8 bytes a page
 * (Documentation/admin-guide/mm/pagemap.rst): bit 63 in memory, bit 62 in swap, bit 61 of a file or
 * shared, bits 0 to 54 the number of the page frame where CAP_SYS_ADMIN may see it. Of how many
 * pages that one fault brings it is one, /proc/kpageflags says of the frame and its neighbours (bit
 * 22, THP, of any size; bit 17, HUGE; bits 15 and 16, the first and the others of such pages).
 */
#ifndef SONDE_MEM_PAGES_H
#define SONDE_MEM_PAGES_H

#include <stdbool.h>
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
/* Of how many small pages it is one that came together: 1 to PAGES_HUGE. 1 too if it is not the
 * process's own: a fault brings some of a file's large page only. */
uint32_t pages_size(uint64_t said);
/* Pure: the same, of the flags of an aligned block of PAGES_HUGE frames and the place in it. */
uint32_t pages_size_in(const uint64_t flags[PAGES_HUGE], size_t at);

/* Does the kernel say which frame a page of this process is in? */
bool pages_tell_frames(void);
/* The kernel's flags of a page frame, /proc/kpageflags; 0: none, or it cannot be asked for. */
uint64_t pages_flags(uint64_t frame);
/* How many frames there are, with those of holes in memory; 0: it cannot be asked for. */
uint64_t pages_frames(void);

struct pages_usage {
	uint64_t own;  /* bytes: private memory, RssAnon */
	uint64_t swap; /* bytes */
};
/* Pure: the bytes of /proc/PID/status. 0 or -EBADMSG. */
int pages_usage_parse(const char *data, size_t len, struct pages_usage *out);
int pages_usage(uint32_t tgid, struct pages_usage *out);
/* Bytes of its huge pages, by /proc/PID/smaps_rollup, for which the kernel walks through all of its
 * memory. 0: none, or it cannot be read. */
uint64_t pages_huge(uint32_t tgid);
/* Pure: MemTotal less MemFree of /proc/meminfo, bytes. 0: they are not in it. */
uint64_t pages_used_parse(const char *data, size_t len);
uint64_t pages_used(void);
/* Bytes that are its own, by /proc/PID/statm: cheap. 0 as above. */
uint64_t pages_own(uint32_t tgid);

#endif
