/* SPDX-License-Identifier: Apache-2.0 */
/* packet: see the header. Link types as in tcpdump.org/linktypes.html; RFC 791, 8200, 9293, 768;
 * IEEE 802.1Q. */
#include "loaders/replay/packet.h"
#include "schema/base/array.h"

#include <string.h>

#define LINK_NULL     0
#define LINK_ETHERNET 1
#define LINK_RAW_BSD  12
#define LINK_RAW_OPEN 14
#define LINK_RAW      101
#define LINK_LOOP     108
#define LINK_SLL      113
#define LINK_IPV4     228
#define LINK_IPV6     229
#define LINK_SLL2     276

#define ETHER_IPV4 0x0800
#define ETHER_IPV6 0x86dd
#define ETHER_VLAN 0x8100
#define ETHER_QINQ 0x88a8

#define IP_TCP         6
#define IP_UDP         17
#define EXTENSIONS_MAX 8

struct cursor {
	const uint8_t *p;
	size_t len, size; /* captured, on the wire */
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static bool skip(struct cursor *c, size_t n)
{
	if (c->len < n || c->size < n)
		return false;
	c->p += n;
	c->len -= n;
	c->size -= n;
	return true;
}

/* What comes after is padding. */
static void trim(struct cursor *c, size_t n)
{
	c->size = c->size < n ? c->size : n;
	c->len = c->len < n ? c->len : n;
}

static enum packet_what tcp(struct cursor c, struct packet *out)
{
	size_t head;

	if (c.len < 20)
		return PACKET_OTHER;
	out->from.port = be16(c.p);
	out->to.port = be16(c.p + 2);
	out->seq = be32(c.p + 4);
	out->ack = be32(c.p + 8);
	out->flags = c.p[13];
	head = (size_t)(c.p[12] >> 4) * 4;
	if (head < 20 || c.size < head)
		return PACKET_OTHER;
	if (c.len < head) { /* only addresses were captured */
		out->bytes = c.p;
		out->len = 0;
		out->size = c.size - head;
		return PACKET_TCP;
	}
	skip(&c, head);
	out->bytes = c.p;
	out->len = c.len;
	out->size = c.size;
	return PACKET_TCP;
}

static enum packet_what udp(struct cursor c, struct packet *out)
{
	size_t len;

	if (c.len < 8)
		return PACKET_OTHER;
	out->from.port = be16(c.p);
	out->to.port = be16(c.p + 2);
	len = be16(c.p + 4);
	if (len >= 8)
		trim(&c, len);
	if (!skip(&c, 8))
		return PACKET_OTHER;
	out->bytes = c.p;
	out->len = c.len;
	out->size = c.size;
	return PACKET_UDP;
}

static enum packet_what transport(uint8_t protocol, struct cursor c, struct packet *out)
{
	return protocol == IP_TCP ? tcp(c, out) : protocol == IP_UDP ? udp(c, out) : PACKET_OTHER;
}

static enum packet_what fragment(struct cursor c, struct packet_fragment about, struct packet *out)
{
	out->fragment = about;
	out->bytes = c.p;
	out->len = c.len;
	out->size = c.size;
	return PACKET_FRAGMENT;
}

static enum packet_what ipv4(struct cursor c, struct packet *out)
{
	struct packet_fragment about;
	size_t head, total;
	uint8_t protocol;
	uint16_t part;

	if (c.len < 20 || c.p[0] >> 4 != 4)
		return PACKET_OTHER;
	head = (size_t)(c.p[0] & 15) * 4;
	total = be16(c.p + 2);
	part = be16(c.p + 6);
	protocol = c.p[9];
	about = (struct packet_fragment){.id = be16(c.p + 4),
					 .offset = (uint16_t)((part & 0x1fff) * 8),
					 .protocol = protocol,
					 .more = part & 0x2000};
	memcpy(out->from.address, c.p + 12, 4);
	memcpy(out->to.address, c.p + 16, 4);
	if (total >= head) /* 0 where the network card cuts it up later */
		trim(&c, total);
	if (head < 20 || !skip(&c, head))
		return PACKET_OTHER;
	if (part & 0x3fff)
		return fragment(c, about, out);
	return transport(protocol, c, out);
}

static enum packet_what ipv6(struct cursor c, struct packet *out)
{
	uint8_t next;
	size_t len;

	if (c.len < 40 || c.p[0] >> 4 != 6)
		return PACKET_OTHER;
	out->v6 = true;
	len = be16(c.p + 4);
	next = c.p[6];
	memcpy(out->from.address, c.p + 8, 16);
	memcpy(out->to.address, c.p + 24, 16);
	skip(&c, 40);
	if (len)
		trim(&c, len);
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		if (next != 0 && next != 43 && next != 60 && next != 44 && next != 51)
			return transport(next, c, out);
		if (c.len < 8)
			return PACKET_OTHER;
		if (next == 44 && be16(c.p + 2) & 0xfff9) {
			const struct packet_fragment about = {.id = be32(c.p + 4),
							      .offset = be16(c.p + 2) & 0xfff8,
							      .protocol = c.p[0],
							      .more = c.p[3] & 1};

			skip(&c, 8);
			return fragment(c, about, out);
		}
		len = next == 44 ? 8 :
		      next == 51 ? ((size_t)c.p[1] + 2) * 4 :
				   ((size_t)c.p[1] + 1) * 8;
		next = c.p[0];
		if (!skip(&c, len))
			return PACKET_OTHER;
	}
	return PACKET_OTHER;
}

static enum packet_what network(struct cursor c, struct packet *out)
{
	if (!c.len)
		return PACKET_OTHER;
	return c.p[0] >> 4 == 4 ? ipv4(c, out) : ipv6(c, out);
}

static enum packet_what ether(uint16_t type, struct cursor c, struct packet *out)
{
	for (int i = 0; i < EXTENSIONS_MAX && (type == ETHER_VLAN || type == ETHER_QINQ); i++) {
		if (c.len < 4)
			return PACKET_OTHER;
		type = be16(c.p + 2);
		skip(&c, 4);
	}
	return type == ETHER_IPV4 ? ipv4(c, out) : type == ETHER_IPV6 ? ipv6(c, out) : PACKET_OTHER;
}

bool packet_link_known(int link)
{
	static const int known[] = {LINK_NULL, LINK_ETHERNET, LINK_RAW_BSD, LINK_RAW_OPEN,
				    LINK_RAW,  LINK_LOOP,     LINK_SLL,     LINK_IPV4,
				    LINK_IPV6, LINK_SLL2};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i] == link)
			return true;
	return false;
}

enum packet_what packet_of_fragments(const struct packet *of, const uint8_t *bytes, size_t len,
				     size_t size, struct packet *out)
{
	*out = (struct packet){.v6 = of->v6, .from = of->from, .to = of->to};
	out->what = transport(of->fragment.protocol, (struct cursor){bytes, len, size}, out);
	return out->what;
}

enum packet_what packet_parse(int link, const uint8_t *bytes, size_t len, size_t size,
			      struct packet *out)
{
	struct cursor c = {bytes, len, size > len ? size : len};
	size_t head = link == LINK_ETHERNET                  ? 14 :
		      link == LINK_SLL                       ? 16 :
		      link == LINK_SLL2                      ? 20 :
		      link == LINK_NULL || link == LINK_LOOP ? 4 :
							       0;
	const uint8_t *p = bytes;

	memset(out, 0, sizeof(*out));
	if (!skip(&c, head))
		return PACKET_OTHER;
	switch (link) {
	case LINK_ETHERNET:
		out->what = ether(be16(p + 12), c, out);
		break;
	case LINK_SLL:
		out->what = ether(be16(p + 14), c, out);
		break;
	case LINK_SLL2:
		out->what = ether(be16(p), c, out);
		break;
	default:
		out->what = network(c, out);
		break; /* the family of a loopback header differs by system: the version stands in
			  the packet */
	}
	return out->what;
}
