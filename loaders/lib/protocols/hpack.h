/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hpack: header compression of HTTP/2 (RFC 7541), for one direction. It keeps the values of the few
 * headers that are of use here, and of all others the size, which is what the table's bounds go by.
 *
 * Entries are counted from the newest, so that a stream whose beginning (or a part) was not seen
 * can be read on: what was inserted since is exact, a reference to something older is a header
 * without a name. Nothing is guessed.
 */
#ifndef SONDE_PROTOCOLS_HPACK_H
#define SONDE_PROTOCOLS_HPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPACK_VALUE_MAX 512   /* of a value that is kept; longer ones are cut */
#define HPACK_TABLE_MAX 65536 /* bytes, as RFC 7541 counts them */

enum hpack_name {
	HPACK_OTHER,
	HPACK_METHOD,
	HPACK_PATH,
	HPACK_AUTHORITY,
	HPACK_STATUS,
	HPACK_PROTOCOL,
	HPACK_CONTENT_TYPE,
	HPACK_GRPC_STATUS,
	HPACK_HOST,
	HPACK_TRACEPARENT,
	HPACK_B3,
	HPACK_B3_TRACE,
	HPACK_B3_SPAN,
	HPACK_UBER,
	HPACK_REQUEST_ID,
	HPACK_SW8,
	HPACK_UNKNOWN /* a reference to what was not seen */
};
#define HPACK_NAMES 17

struct hpack {
	struct hpack_entry {
		char *value; /* NULL: not kept */
		uint32_t size, name_len;
		uint8_t name;
	} * entries; /* a ring, newest at head */
	uint32_t head, count, cap;
	size_t size, max;
};

/* A header: `value` is borrowed, NULL where it is not known (or not kept). */
typedef void hpack_header(void *ctx, enum hpack_name name, const char *value, size_t n);

void hpack_init(struct hpack *h);
void hpack_release(struct hpack *h);
/* All that is in the table is not known any more. */
void hpack_forget(struct hpack *h);
/* Decodes a whole block. False: it is invalid, and so is the table (hpack_forget). */
bool hpack_decode(struct hpack *h, const uint8_t *p, size_t n, hpack_header *each, void *ctx);

#endif
