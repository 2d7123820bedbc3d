/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: 64-bit content hash for tables and to compare file contents. Not for secrets. The
 * function is FNV-1a by 8-byte words with a final avalanche (murmur3's fmix64, public domain); its
 * values are stored in files (image keys, the store), so they never change: a new function gets a
 * new name.
 */
#ifndef SONDE_BASE_HASH_H
#define SONDE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_SEED 0xcbf29ce484222325ull

uint64_t hash_bytes(uint64_t seed, const void *data, size_t len);
uint64_t hash_u64(uint64_t seed, uint64_t v);
uint64_t hash_str(uint64_t seed, const char *s);
/* A different function, for megabytes: eight independent words, so that the CPU overlaps their
 * multiplications. Image indexes store its values. */
uint64_t hash_wide(uint64_t seed, const void *data, size_t len);

#endif
