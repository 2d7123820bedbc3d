/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/hash.h"

#include <string.h>

#define HASH_PRIME 0x100000001b3ull

static uint64_t fmix64(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdull;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ull;
	h ^= h >> 33;
	return h;
}

uint64_t hash_u64(uint64_t seed, uint64_t v)
{
	return fmix64((seed ^ v) * HASH_PRIME + 0x9e3779b97f4a7c15ull);
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = seed ^ (uint64_t)len;
	uint64_t w;

	for (; len >= 8; p += 8, len -= 8) {
		h = (h ^ word_at(p)) * HASH_PRIME;
		h ^= h >> 29;
	}
	w = 0;
	if (len)
		memcpy(&w, p, len);
	h = (h ^ w) * HASH_PRIME;
	return fmix64(h);
}

/* A step of multiply-with-carry: h * WIDE_FACTOR modulo WIDE_FACTOR * 2^32 - 1, with one product of
 * 32 bits each, which CPUs make of several lanes at once. What differs stays different. */
#define WIDE_FACTOR 0xffffda61u
#define WIDE_LANES  8

static uint64_t wide_step(uint64_t h)
{
	return (h & UINT32_MAX) * WIDE_FACTOR + (h >> 32);
}

uint64_t hash_wide(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h[WIDE_LANES];

	for (int i = 0; i < WIDE_LANES; i++)
		h[i] = seed + (uint64_t)i;
	for (; len >= sizeof(h); p += sizeof(h), len -= sizeof(h))
#pragma GCC unroll 8 /* in registers */
		for (int i = 0; i < WIDE_LANES; i++)
			h[i] = wide_step(h[i] ^ word_at(p + 8 * i));
	return hash_bytes(hash_bytes(seed, h, sizeof(h)), p, len);
}

uint64_t hash_str(uint64_t seed, const char *s)
{
	return hash_bytes(seed, s, strlen(s));
}
