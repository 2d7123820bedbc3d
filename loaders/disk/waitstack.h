/* SPDX-License-Identifier: Apache-2.0 */
/* waitstack: the kernel functions in which a thread waited for a request, as one text. */
#ifndef SONDE_DISK_WAITSTACK_H
#define SONDE_DISK_WAITSTACK_H

#include <stddef.h>
#include <linux/types.h>

#include "loaders/lib/bpf/family.h"

#define WAITSTACK_TEXT 1024 /* more functions are not taken */
#define WAITSTACK_NAME 64   /* of a function; cut if it is longer */

/* Pure: names innermost first, with a blank between, without the scheduler's at the beginning and
 * those by which each system call, page fault and kernel thread begins at the end. */
void waitstack_join(char (*names)[WAITSTACK_NAME], size_t n, char out[WAITSTACK_TEXT]);
/* The same of return addresses; "" where the kernel hides its symbols. */
void waitstack_text(struct family_host *h, const __u64 *addresses, size_t n,
		    char out[WAITSTACK_TEXT]);

#endif
