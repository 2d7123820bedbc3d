/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heapjava: Java programs whose memory is known by who touched it first, and not by who allocated
 * it. In a Java heap these differ: a thread fills a buffer that it was given, and the collector
 * moves what is still used to pages that it touches first. So most rows of a heap that grows are
 * the collector's, or of the line that happened to begin a buffer. Lines that allocate are family
 * java's.
 */
#ifndef SONDE_TOOLS_HEAPJAVA_H
#define SONDE_TOOLS_HEAPJAVA_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "tools/fold/fold.h"

#define HEAPJAVA_LEAST (1u << 20) /* bytes that are in use */

struct heapjava {
	struct heapjava_program {
		char *who; /* its container, or else its command */
		uint32_t pid;
		uint64_t key;   /* heapjava_key */
		uint64_t bytes; /* in use */
	} * list;
	size_t n, cap;
};

/* Adds Java programs, the largest first; those in `known` are left out, by heapjava_key. `f`: of
 * kind mem, with leaves. */
void heapjava_find(const struct fold *f, const struct idmap *known, struct heapjava *out);
/* Lines that allocate in it are known. */
void heapjava_forget(struct heapjava *j, const struct fold_process *p);
void heapjava_release(struct heapjava *j);
uint64_t heapjava_key(const struct fold_process *p);

#endif
