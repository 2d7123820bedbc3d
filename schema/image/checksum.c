/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/image/checksum.h"

#include <string.h>

#include "schema/base/hash.h"
#include "schema/image/format.h"

/* Where the table ends; 0: not in the file. */
static size_t table_end(const struct image_header *h, size_t len)
{
	uint64_t end = sizeof(*h) + h->section_count * (uint64_t)sizeof(struct image_section);

	return end <= len ? (size_t)end : 0;
}

static uint64_t head_checksum(const uint8_t *data, size_t end)
{
	const size_t from = offsetof(struct image_header, total_size);

	return hash_wide(HASH_SEED, data + from, end - from);
}

/* false: it does not lie in the file. */
static bool section_checksum(const uint8_t *data, size_t len, const struct image_section *s,
			     uint64_t *out)
{
	uint64_t filled = (s->size + 7) & ~7ull;

	if (s->size > len || filled > len || s->offset > len - filled)
		return false;
	*out = hash_wide(HASH_SEED, data + s->offset, filled);
	return true;
}

static uint8_t *section_at(uint8_t *data, uint32_t i)
{
	return data + sizeof(struct image_header) + i * sizeof(struct image_section);
}

void image_checksums_make(void *data, size_t len)
{
	struct image_header h;
	size_t end;

	memcpy(&h, data, sizeof(h));
	end = table_end(&h, len);
	if (!end)
		return;
	for (uint32_t i = 0; i < h.section_count; i++) {
		struct image_section s;

		memcpy(&s, section_at(data, i), sizeof(s));
		if (section_checksum(data, len, &s, &s.checksum))
			memcpy(section_at(data, i), &s, sizeof(s));
	}
	h.checksum = head_checksum(data, end);
	memcpy(data, &h, sizeof(h));
}

static bool is_asked(uint32_t kinds, uint32_t kind)
{
	return kinds == UINT32_MAX || (kind < 32 && kinds & 1u << kind);
}

bool image_checksums_right(const void *data, size_t len, uint32_t kinds)
{
	struct image_header h;
	size_t end;

	memcpy(&h, data, sizeof(h));
	end = table_end(&h, len);
	if (!end || head_checksum(data, end) != h.checksum)
		return false;
	for (uint32_t i = 0; i < h.section_count; i++) {
		struct image_section s;
		uint64_t sum;

		memcpy(&s, (const uint8_t *)data + sizeof(h) + i * sizeof(s), sizeof(s));
		if (is_asked(kinds, s.kind) &&
		    (!section_checksum(data, len, &s, &sum) || sum != s.checksum))
			return false;
	}
	return true;
}
