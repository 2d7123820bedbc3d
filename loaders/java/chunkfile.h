/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunkfile: the chunk that a Java virtual machine has open, through the machine's own descriptor
 * (/proc/PID/fd/N): in any mount namespace, and also after it was unlinked. Opened read-only.
 */
#ifndef SONDE_JAVA_CHUNKFILE_H
#define SONDE_JAVA_CHUNKFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct chunkfile {
	int fd;     /* -1: none */
	int theirs; /* the machine's descriptor */
	dev_t dev;
	ino_t ino;
	uint64_t read; /* up to here */
};
#define CHUNKFILE_NONE ((struct chunkfile){.fd = -1, .theirs = -1})

/* Of the chunks that the process has open the one that began last. 0, -ENOENT, -errno. */
int chunkfile_find(uint32_t pid, struct chunkfile *out);
/* Is it still the one that the machine writes? */
bool chunkfile_is_current(uint32_t pid, const struct chunkfile *c);
void chunkfile_close(struct chunkfile *c);

#endif
