/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govars: variables of Go's runtime that no symbol names, found by the instructions that use them. Functions are known by
 * pclntab's names, which stripping leaves; what they do with the variables has been the same from Go 1.15 to 1.27:
 *
 *   mbuckets   the first 8-byte variable that mProf_FlushLocked loads; stkbucket uses it too
 *   xbuckets, bbuckets  the next two that stkbucket uses after it
 *   mProfCycle the first 4-byte variable that mProf_Free loads; mProf_Malloc loads it too. If mProf_NextCycle
 *              touches what is 4 bytes behind it, it is mProf (Go before 1.19)
 *   MemProfileRate  8 bytes that both allocmcache and profilealloc load, and that begin as 512 * 1024: in the file, or
 *              (Go 1.16 to 1.20) made so by runtime.init, which stores it and has that number
 *   ticks      the first 8-byte variable that ticksPerSecond loads is ticks.val, as far into ticks as the version says
 *
 * All but MemProfileRate begin as 0: they lie between moduledata.bss and enoptrbss. What two functions do not agree on is
 * left unknown. Whoever reads a process proves what he finds there before he believes it (loaders/goheap/buckets.h).
 * amd64 only: elsewhere nothing is found. Source: src/runtime/mprof.go, mcache.go, malloc.go, runtime.go.
 */
#ifndef SONDE_INDEX_GOVARS_H
#define SONDE_INDEX_GOVARS_H

#include "loaders/index/elffile.h"
#include "loaders/index/gotable.h"
#include "schema/image/format.h"

/* One use of memory by its distance from the instruction. */
struct govars_use {
	uint64_t addr;
	uint8_t opcode; /* of the one-byte map */
	bool wide;      /* 8 bytes */
};

/* The next use at or after *pos, in code that begins at `vaddr`; *pos moves behind its instruction. false: no more, or
 * what follows is no instruction. Pure over (bytes, len). */
bool govars_next(const uint8_t *code, size_t len, uint64_t vaddr, size_t *pos, struct govars_use *out);

/* Fill in those of out->variables that are 0, and out->from_code. `out` has version and bss already. 0, or as source_read. */
int govars_find(struct elf_file *f, const struct go_table *t, struct image_go_record *out);

#endif
