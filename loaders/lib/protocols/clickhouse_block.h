/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clickhouse_block: where a block of ClickHouse's native protocol ends. Private to clickhouse.c. V
 * is a LEB128 number, S a V and that number of bytes.
 *
 *   block      1 OVERFLOWS:8 2 BUCKET:32 0, V columns, V rows, each column:
 *              S name S type [CUSTOM:8], what serialises the type for all rows
 *   frames     a compressed block is frames: CHECKSUM:128 METHOD:8 (02, 82 LZ4, 90 ZSTD) LEN:32
 *              (from METHOD on) PLAIN_LEN:32. The writer's buffer is 1 MiB: a shorter frame is a
 *              block's last
 *   types      fixed ones: a fixed number of bytes a row | String: S each
 *              Nullable: a byte each, the type
 *              Array, Map, Nested: OFFSET:64 each, the items' types for as many as the last says
 *              Tuple: each of its types
 *              LowCardinality: once VERSION:64, then KEYS:64 (its low 8 bits: bytes of an index as
 *              a power of two, 2^9: keys follow), [N:64, the type of each], ROWS:64, an index each
 *   sparse     CUSTOM 1, KIND 1: V defaults before each other value, the last with bit 62;
 *              then those values
 *
 * A type is compiled into ops, each with a slot that counts its items.
 */
#ifndef SONDE_PROTOCOLS_CLICKHOUSE_BLOCK_H
#define SONDE_PROTOCOLS_CLICKHOUSE_BLOCK_H

#include "loaders/lib/protocols/protocol.h"

#define STRING_MAX (1ull << 30)
#define ROWS_MAX   (1ull << 32)
#define FRAME_HEAD 25 /* with its checksum */
#define PACKET_MAX 17 /* the highest number of a packet that is known */

struct block;

/* `custom`: each column says how it is serialised (revision 54454). To be freed with free(). */
struct block *block_new(bool custom);
/* As step of a protocol. *over: the block ends with what is returned; 0 with it: nothing more of it
 * was there. */
int64_t block_step(struct block *b, const uint8_t *p, size_t n, bool last, bool *over);
bool block_is_frame(const uint8_t *p, size_t n);
bool block_is_plain(const uint8_t *p, size_t n);

struct reader {
	const uint8_t *p;
	size_t n, at;
	bool more, bad;
};

static inline uint64_t read_number(struct reader *r)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && !r->more && !r->bad; shift += 7) {
		if (r->at >= r->n) {
			r->more = true;
			return 0;
		}
		v |= (uint64_t)(r->p[r->at] & 0x7f) << shift;
		if (!(r->p[r->at++] & 0x80))
			return v;
	}
	r->bad |= !r->more;
	return 0;
}

static inline void read_past(struct reader *r, uint64_t n)
{
	if (r->bad || r->more)
		return;
	r->more = n > r->n - r->at;
	r->at += r->more ? 0 : (size_t)n;
}

static inline uint8_t read_byte(struct reader *r)
{
	size_t at = r->at;

	read_past(r, 1);
	return r->bad || r->more ? 0 : r->p[at];
}

/* At *text, its length; passed over. */
static inline size_t read_string(struct reader *r, const uint8_t **text, uint64_t most)
{
	uint64_t n = read_number(r);

	*text = r->p + r->at;
	r->bad |= n > most;
	read_past(r, n);
	return r->bad || r->more ? 0 : (size_t)n;
}

static inline void read_past_strings(struct reader *r, int n, uint64_t most)
{
	const uint8_t *text;

	while (n-- > 0)
		read_string(r, &text, most);
}

static inline void read_past_numbers(struct reader *r, int n)
{
	while (n-- > 0)
		read_number(r);
}

/* What step says. */
static inline int64_t read_so_far(const struct reader *r)
{
	return r->bad ? PROTO_LOST : r->more ? PROTO_MORE : (int64_t)r->at;
}

#endif
