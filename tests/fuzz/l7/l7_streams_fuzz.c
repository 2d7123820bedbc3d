/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7_streams_fuzz: records of any kind and any bytes are read within their bounds; the messages
 * written are valid, and of the bytes seen each is parsed, skipped or blind. Input: records, each
 * with its length as two bytes before it; few sockets and times.
 *
 * covers: loaders/l7/streams.c loaders/l7/sums.c loaders/l7/inorder.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void take(void *ctx, const void *packet, size_t size)
{
	static struct message m;
	size_t at = 0;

	(void)ctx;
	while (message_read(packet, size, &at, &m))
		if (m.kind == MSG_BYTES && m.bytes->count.seen != m.bytes->count.parsed +
									  m.bytes->count.skipped +
									  m.bytes->count.blind)
			abort();
	if (at != size)
		abort();
}

/* What a fuzzer would rarely find by itself: a record of a known kind, of one of four sockets. */
static void tame(uint8_t *record, size_t size)
{
	struct l7_head *h = (struct l7_head *)record;
	struct l7_data *d = (struct l7_data *)record;

	if (size < sizeof(*h))
		return;
	h->sk = h->sk % 4 + 1;
	h->ino = h->ino % 2 + h->sk;
	h->at_ns %= 100000000000;
	h->what = h->what % 5;
	h->dir &= 1;
	if (h->what == L7_DATA && size >= sizeof(*d)) {
		d->len = (uint32_t)(size - sizeof(*d));
		d->size = d->len + d->size % 4096;
		d->pos %= 100000;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct message_writer *to = calloc(1, sizeof(*to));
	struct l7_want *wants = calloc(L7_WANT_ENTRIES, sizeof(*wants));
	struct streams *s;

	to->send = take;
	s = streams_new(wants, to, 10, 0);
	if (len % 2)
		streams_ring(s);
	while (len > 2) {
		size_t n = data[0] | (size_t)data[1] << 8;
		uint64_t record[1024];

		data += 2;
		len -= 2;
		n = n < len ? n : len;
		n = n < sizeof(record) ? n : sizeof(record);
		memcpy(record, data, n);
		tame((uint8_t *)record, n);
		streams_record(s, record, n);
		if (data[0] & 1)
			streams_take(s, 50000000000);
		data += n;
		len -= n;
		if (!n)
			break;
	}
	streams_write(s, 60000000000, false);
	streams_end(s, 200000000000);
	streams_free(s);
	free(wants);
	free(to);
	return 0;
}
