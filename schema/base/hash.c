/* SPDX-License-Identifier: Apache-2.0 */
/* hash: see the header for the function. */
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

uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = seed ^ (uint64_t)len;
	uint64_t w;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * HASH_PRIME;
		h ^= h >> 29;
	}
	w = 0;
	if (len)
		memcpy(&w, p, len);
	h = (h ^ w) * HASH_PRIME;
	return fmix64(h);
}

uint64_t hash_str(uint64_t seed, const char *s)
{
	return hash_bytes(seed, s, strlen(s));
}
