/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms_parts: the table as its own files see it. kallsyms.c makes it from text, kallsyms_find.c
 * answers from it, kallsyms_kept.c keeps it in a file.
 */
#ifndef SONDE_HOST_KALLSYMS_PARTS_H
#define SONDE_HOST_KALLSYMS_PARTS_H

#include "loaders/lib/host/names/kallsyms.h"

#define NAME_MARKER  UINT32_MAX /* not a function: ends the one before */
#define NAME_PFX     0x80000000u
#define PFX          "__pfx_"
#define PFX_LEN      6
#define NAME_MAX_LEN 1024

struct kallsyms_module {
	const char *name;
	uint64_t base;
};

struct kallsyms {
	uint64_t first;   /* addresses are relative to it */
	uint32_t *rel;    /* either this */
	uint64_t *wide;   /* or this, if the span needs it */
	uint32_t *name;   /* offset in the pool, NAME_PFX, NAME_MARKER */
	uint16_t *module; /* index, 0: the kernel */
	size_t n, functions, skipped;
	char *pool;
	size_t pool_len, pool_cap;
	struct kallsyms_module *modules;
	size_t n_modules, cap_modules;
	uint64_t text, etext;
	struct kallsyms_orc orc;
	bool hidden;
	bool borrowed; /* the arrays and names above (but `modules`) are not ours */
	void *kept;    /* the mapping that they lie in, NULL: somebody else's memory */
	size_t kept_bytes;
	char scratch[NAME_MAX_LEN + PFX_LEN + 1];
};

static inline uint64_t kallsyms_addr(const struct kallsyms *k, size_t i)
{
	return k->rel ? k->first + k->rel[i] : k->wide[i];
}

#endif
