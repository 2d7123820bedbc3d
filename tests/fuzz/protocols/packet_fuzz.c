/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: loaders/replay/packet.c loaders/replay/pcapng.c loaders/replay/fragments.c
 * loaders/replay/flows.c
 *
 * Any packets: LINK:8, then LEN:8 PACKET; or, as it begins, a file of pcapng. What is parsed lies
 * within the packet; what the flows hold is bounded.
 */
#include <stdlib.h>

#include "loaders/replay/flows.h"
#include "loaders/replay/pcapng.h"
#include "schema/base/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(void *ctx, const struct proto_request *r)
{
	struct flow_ends ends;

	(void)ctx;
	flow_ends(r->user, &ends);
	if (!r->operation[0])
		abort();
}

static void file(struct flows *f, const uint8_t *data, size_t size)
{
	struct pcapng *x = pcapng_new();
	struct pcapng_packet got;
	struct packet p;
	int rc = 0;

	for (size_t n; size >= PCAPNG_HEAD && rc >= 0; data += n, size -= n) {
		n = pcapng_size(x, data);
		if (!n || n > size)
			break;
		rc = pcapng_block(x, data, n, &got);
		if (rc != 1)
			continue;
		if (got.bytes < data || got.bytes + got.len > data + n || got.at_ns < 0)
			abort();
		packet_parse(got.link, got.bytes, got.len, got.size, &p);
		flows_packet(f, &p, got.at_ns);
	}
	pcapng_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int links[] = {0,   1,   12, 14, 101, 108, 113, 228,
				    229, 276, 7,  9,  50,  51,  104, 239};
	static struct protocols *of;
	struct proto_opts opts = {.emit = hear};
	struct packet p;
	struct flows *f;
	int64_t now = 1;
	int link;

	if (!size)
		return 0;
	if (!of)
		of = protocols_new(&opts);
	f = flows_new(of);
	if (data[0] == (uint8_t)PCAPNG_MAGIC) {
		file(f, data, size);
		flows_end(f);
		flows_free(f);
		return 0;
	}
	link = links[data[0] % ARRAY_SIZE(links)];
	for (size_t at = 1; at + 1 < size;) {
		size_t len = data[at++];

		len = len < size - at ? len : size - at;
		packet_parse(link, data + at, len, data[0] & 64 ? len + 100 : len, &p);
		if (p.what == PACKET_TCP || p.what == PACKET_UDP)
			if (p.bytes < data + at || p.bytes + p.len > data + at + len ||
			    p.len > p.size)
				abort();
		flows_packet(f, &p, now++);
		at += len;
	}
	flows_end(f);
	flows_free(f);
	return 0;
}
