/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govars: variables of Go's runtime without symbols, found by the instructions that use them.
 * Functions are known by pclntab's names, which stripping keeps; their use of the variables is the
 * same from Go 1.15 to 1.27:
 *
 *   mbuckets        the first 8-byte variable that mProf_FlushLocked loads; stkbucket uses it too
 *   xbuckets, bbuckets  the next two that stkbucket uses after it
 *   mProfCycle      the first 4-byte variable that mProf_Free loads; mProf_Malloc loads it too. If
 *                   mProf_NextCycle uses what is 4 bytes after it, it is mProf (Go before 1.19)
 *   MemProfileRate  8 bytes that both allocmcache and profilealloc load, and that begin as 512 *
 *                   1024: in the file, or (Go 1.16 to 1.20) stored by runtime.init, which has that
 *                   number
 *   ticks           the first 8-byte variable that ticksPerSecond loads is ticks.val, at the
 *                   version's offset in ticks
 *
 * All but MemProfileRate begin as 0: they are between moduledata.bss and enoptrbss. If two
 * functions disagree, the variable stays unknown. The reader of a process verifies what it finds
 * there before it believes it (loaders/goheap/buckets.h). Pure over (bytes, len); amd64 only: the
 * caller asks for nothing else. Source: src/runtime/mprof.go, mcache.go, malloc.go, runtime.go.
 */
#ifndef SONDE_INDEX_GOVARS_H
#define SONDE_INDEX_GOVARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/image/format.h"

#define GOVARS_FUNCTIONS 9u
#define GOVARS_USES_MAX  64u /* of one function */

/* One use of memory by its distance from the instruction. */
struct govars_use {
	uint64_t addr;
	uint8_t opcode; /* of the one-byte map */
	bool wide;      /* 8 bytes */
};

/* What the functions that count use, in order. Zeroed: nothing yet. */
struct govars {
	struct govars_use of[GOVARS_FUNCTIONS][GOVARS_USES_MAX];
	size_t count[GOVARS_FUNCTIONS];
	bool init_has_rate; /* runtime.init has the number 512 * 1024 */
};

/* Does the file hold GOVARS_RATE at this address? */
#define GOVARS_RATE (512 * 1024)
typedef bool (*govars_begins_fn)(void *ctx, uint64_t addr);

/* Is a function of this name looked at? */
bool govars_wants(const char *name);
/* The code of a function that is, from `vaddr` on. */
void govars_note(struct govars *g, const char *name, const uint8_t *code, size_t len,
		 uint64_t vaddr);
/* Fill in those of out->variables that are 0, and out->from_code. `out` has version and bss
 * already. */
void govars_settle(const struct govars *g, govars_begins_fn begins, void *ctx,
		   struct image_go_record *out);

#endif
