/* SPDX-License-Identifier: Apache-2.0 */
/* Both are written from their authors' descriptions; words are
 * little-endian in both. */
#include "loaders/lib/host/journal/journalhash.h"

#include <string.h>

/* `n` bytes, 8 at most, as a number. */
static uint64_t number(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static uint64_t turn64(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

static void sip_rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1], v[2] += v[3];
		v[1] = turn64(v[1], 13) ^ v[0];
		v[3] = turn64(v[3], 16) ^ v[2];
		v[0] = turn64(v[0], 32);
		v[2] += v[1], v[0] += v[3];
		v[1] = turn64(v[1], 17) ^ v[2];
		v[3] = turn64(v[3], 21) ^ v[0];
		v[2] = turn64(v[2], 32);
	}
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t journalhash_sip(const void *data, size_t len, const uint8_t key[16])
{
	const uint64_t k0 = number(key, 8), k1 = number(key + 8, 8);
	uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
			 k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
	const uint8_t *p = data;
	size_t left = len;

	for (; left >= 8; p += 8, left -= 8)
		sip_word(v, number(p, 8));
	sip_word(v, number(p, left) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint32_t turn32(uint32_t v, int by)
{
	return v << by | v >> (32 - by);
}

static void jenkins_mix(uint32_t s[3])
{
	static const int by[6] = {4, 6, 8, 16, 19, 4};

	for (int i = 0; i < 6; i++) {
		uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];

		*a = (*a - *c) ^ turn32(*c, by[i]);
		*c += *b;
	}
}

static void jenkins_end(uint32_t s[3])
{
	static const int by[7] = {14, 11, 25, 16, 4, 14, 24};

	for (int i = 0; i < 7; i++) {
		uint32_t *to = &s[(2 + i) % 3], from = s[(1 + i) % 3];

		*to = (*to ^ from) - turn32(from, by[i]);
	}
}

static void jenkins_add(uint32_t s[3], const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s[i / 4] += (uint32_t)p[i] << (8 * (i % 4));
}

uint64_t journalhash_jenkins(const void *data, size_t len)
{
	const uint32_t begin = 0xdeadbeef + (uint32_t)len;
	uint32_t s[3] = {begin, begin, begin};
	const uint8_t *p = data;

	for (; len > 12; p += 12, len -= 12) {
		jenkins_add(s, p, 12);
		jenkins_mix(s);
	}
	if (len) {
		jenkins_add(s, p, len);
		jenkins_end(s);
	}
	return (uint64_t)s[2] << 32 | s[1];
}
