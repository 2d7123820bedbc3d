/* SPDX-License-Identifier: Apache-2.0 */
/* packet: see the header. Link types as in tcpdump.org/linktypes.html; RFC 791, 8200, 9293, 768;
 * IEEE 802.1Q. Tunnels: RFC 7348 (VXLAN), draft-ietf-nvo3-vxlan-gpe, RFC 8926 (Geneve), RFC 2784,
 * 2890, 2637, 7637 (GRE), draft-foschiano-erspan, RFC 2003, 2473, 4213 (IP in IP), RFC 3032, 4385
 * (MPLS), RFC 2516, 1661 (PPPoE), RFC 2661, 3931, 4719 (L2TP), RFC 8300 (NSH), IEEE 802.1ah,
 * draft-ietf-intarea-gue. */
#include "loaders/replay/packet.h"
#include "schema/base/array.h"

#include <string.h>

#define LINK_NULL     0
#define LINK_ETHERNET 1
#define LINK_PPP      9
#define LINK_RAW_BSD  12
#define LINK_RAW_OPEN 14
#define LINK_PPP_HDLC 50
#define LINK_PPPOE    51
#define LINK_RAW      101
#define LINK_C_HDLC   104
#define LINK_LOOP     108
#define LINK_SLL      113
#define LINK_IPV4     228
#define LINK_IPV6     229
#define LINK_NFLOG    239
#define LINK_SLL2     276

#define ETHER_IPV4        0x0800
#define ETHER_IPV6        0x86dd
#define ETHER_VLAN        0x8100
#define ETHER_QINQ        0x88a8
#define ETHER_MPLS        0x8847
#define ETHER_MPLS_UP     0x8848 /* multicast or upstream-assigned labels */
#define ETHER_PPPOE       0x8864
#define ETHER_TRANSPARENT 0x6558 /* Ethernet in GRE and Geneve */
#define ETHER_PPP         0x880b
#define ETHER_PROVIDER    0x88e7 /* Ethernet in Ethernet (802.1ah) */
#define ETHER_NSH         0x894f
#define ETHER_ERSPAN      0x88be
#define ETHER_ERSPAN3     0x22eb
#define HEAD_ETHERNET     14
#define ETHER_LEAST       0x600 /* a smaller number is a length */
#define HEAD_SNAP         8     /* IEEE 802.2: AA AA 03 00 00 00 TYPE:16 */

#define NFLOG_PAYLOAD 9
#define NFLOG_FIELDS  64

#define PPP_IPV4 0x21
#define PPP_IPV6 0x57
#define PPP_MPLS 0x281

#define IP_IPV4        4
#define IP_TCP         6
#define IP_UDP         17
#define IP_IPV6        41
#define IP_GRE         47
#define IP_AH          51
#define IP_L2TP        115
#define IP_MPLS        137
#define EXTENSIONS_MAX 8
#define LABELS_MAX     16

#define PORT_VXLAN     4789
#define PORT_VXLAN_OLD 8472 /* Linux's default before IANA assigned one */
#define PORT_VXLAN_GPE 4790
#define PORT_GENEVE    6081
#define PORT_MPLS      6635
#define PORT_GTP       2152 /* user data of mobile networks (3GPP TS 29.281) */
#define PORT_L2TP      1701
#define PORT_GUE       6080

#define GTP_DATA       0xff
#define GTP_EXTENSIONS 8

struct cursor {
	const uint8_t *p;
	size_t len, size; /* captured, on the wire */
	int tunnels;      /* depth of tunnels around it */
};

static enum packet_what ether(uint16_t type, struct cursor c, struct packet *out);
static enum packet_what ethernet(struct cursor c, struct packet *out);
static enum packet_what snap(struct cursor c, struct packet *out);
static enum packet_what network(struct cursor c, struct packet *out);
static enum packet_what transport(uint8_t protocol, struct cursor c, struct packet *out);

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

/* ---- tunnels ---- */

static bool into(struct cursor *c, size_t n)
{
	return skip(c, n) && ++c->tunnels <= PACKET_TUNNELS;
}

static enum packet_what mpls(struct cursor c, struct packet *out)
{
	bool bottom = false;

	for (int i = 0; i < LABELS_MAX && !bottom; i++) {
		if (c.len < 4)
			return PACKET_OTHER;
		bottom = c.p[2] & 1;
		skip(&c, 4);
	}
	if (!bottom || !c.len || !into(&c, 0))
		return PACKET_OTHER;
	if (c.p[0] >> 4 == 4 || c.p[0] >> 4 == 6)
		return network(c, out);
	/* Ethernet, behind a control word if its first four bits are 0 (RFC 4385) */
	return (c.p[0] >> 4 || skip(&c, 4)) ? ethernet(c, out) : PACKET_OTHER;
}

static enum packet_what ppp(struct cursor c, struct packet *out)
{
	unsigned protocol;

	if (c.len >= 2 && c.p[0] == 0xff && c.p[1] == 3) /* address and control */
		skip(&c, 2);
	if (c.len < 2)
		return PACKET_OTHER;
	protocol = c.p[0] & 1 ? c.p[0] :
				be16(c.p); /* an odd first byte is a compressed protocol number */
	if (!into(&c, c.p[0] & 1 ? 1 : 2))
		return PACKET_OTHER;
	return protocol == PPP_IPV4 || protocol == PPP_IPV6 ? network(c, out) :
	       protocol == PPP_MPLS                         ? mpls(c, out) :
							      PACKET_OTHER;
}

static enum packet_what pppoe(struct cursor c, struct packet *out)
{
	if (c.len < 8 || c.p[0] != 0x11 || c.p[1]) /* version 1, type 1; code 0: session data */
		return PACKET_OTHER;
	if (be16(c.p + 4) >= 2)
		trim(&c, 6u + be16(c.p + 4));
	return skip(&c, 6) ? ppp(c, out) : PACKET_OTHER;
}

/* FLAGS:16 PROTOCOL:16 [CHECKSUM:16 0:16] [KEY:32] [SEQUENCE:32], version 1 [ACKNOWLEDGED:32] */
static enum packet_what gre(struct cursor c, struct packet *out)
{
	unsigned flags, type;
	size_t head = 4;

	if (c.len < 4)
		return PACKET_OTHER;
	flags = be16(c.p);
	type = be16(c.p + 2);
	if ((flags & 7) > 1 || flags & 0x4000) /* unknown version, or source routes (RFC 1701) */
		return PACKET_OTHER;
	head += flags & 0x8000 ? 4 : 0;
	head += flags & 0x2000 ? 4 : 0;
	head += flags & 0x1000 ? 4 : 0;
	head += (flags & 7) == 1 && flags & 0x80 ? 4 : 0;
	if (type == ETHER_ERSPAN && flags & 0x1000) /* type II; without a sequence number it is type
						       I, which has no header */
		head += 8;
	if (type == ETHER_ERSPAN3) {
		if (c.len < head + 12)
			return PACKET_OTHER;
		head += c.p[head + 11] & 1 ? 20 : 12;
	}
	if (!into(&c, head))
		return PACKET_OTHER;
	if (type == ETHER_TRANSPARENT || type == ETHER_ERSPAN || type == ETHER_ERSPAN3)
		return ethernet(c, out);
	return type == ETHER_PPP ? ppp(c, out) : ether((uint16_t)type, c, out);
}

/* VERSION:2 FLAGS:2 TTL:6 WORDS:6 (of 4 bytes) 0:4 KIND:4 PROTOCOL:8 PATH:32 ... */
static enum packet_what nsh(struct cursor c, struct packet *out)
{
	uint8_t next;

	if (c.len < 8 || c.p[0] >> 6 || (c.p[1] & 0x3f) < 2)
		return PACKET_OTHER;
	next = c.p[3];
	if (!into(&c, (c.p[1] & 0x3fu) * 4))
		return PACKET_OTHER;
	return next == 3              ? ethernet(c, out) :
	       next == 1 || next == 2 ? network(c, out) :
	       next == 5              ? mpls(c, out) :
					PACKET_OTHER;
}

/* FLAGS:8 0:24 NETWORK:24 0:8; GPE: FLAGS:8 0:16 PROTOCOL:8 ... */
static enum packet_what vxlan(struct cursor c, bool gpe, struct packet *out)
{
	uint8_t next = gpe && c.len >= 8 && c.p[0] & 4 ? c.p[3] : 3;

	if (c.len < 8 || !(c.p[0] & 8) || c.p[7] || !into(&c, 8))
		return PACKET_OTHER;
	return next == 3              ? ethernet(c, out) :
	       next == 1 || next == 2 ? network(c, out) :
	       next == 4              ? nsh(c, out) :
	       next == 5              ? mpls(c, out) :
					PACKET_OTHER;
}

/* VERSION:2 OPTIONS:6 (of 4 bytes) FLAGS:8 PROTOCOL:16 NETWORK:24 0:8 OPTIONS */
static enum packet_what geneve(struct cursor c, struct packet *out)
{
	uint16_t type;

	if (c.len < 8 || c.p[0] >> 6 || c.p[7])
		return PACKET_OTHER;
	type = be16(c.p + 2);
	if (!into(&c, 8 + (c.p[0] & 0x3fu) * 4))
		return PACKET_OTHER;
	return type == ETHER_TRANSPARENT ? ethernet(c, out) : ether(type, c, out);
}

/* FLAGS:8 TYPE:8 LEN:16 TUNNEL:32 [SEQUENCE:16 N:8 NEXT:8, and extensions: LEN:8, in words of 32
 * bits, ... NEXT:8] */
static enum packet_what gtp(struct cursor c, struct packet *out)
{
	uint8_t flags, next = 0;

	if (c.len < 12 || c.p[0] >> 4 != 3 || c.p[1] != GTP_DATA)
		return PACKET_OTHER;
	flags = c.p[0];
	trim(&c, 8u + be16(c.p + 2));
	if (!into(&c, 8))
		return PACKET_OTHER;
	if (flags & 7) {
		next = c.len >= 4 && flags & 4 ? c.p[3] : 0;
		if (!skip(&c, 4))
			return PACKET_OTHER;
	}
	for (int i = 0; next; i++) {
		const size_t words = c.len ? c.p[0] : 0;

		if (!words || i == GTP_EXTENSIONS || c.len < words * 4)
			return PACKET_OTHER;
		next = c.p[words * 4 - 1];
		skip(&c, words * 4);
	}
	return network(c, out);
}

/* Ethernet with an IP packet that fits into what is there. */
static bool is_ethernet(const struct cursor *c, size_t at)
{
	const uint8_t *ip = c->p + at + HEAD_ETHERNET;
	size_t room;

	if (c->len < at + HEAD_ETHERNET + 20)
		return false;
	room = c->size - at - HEAD_ETHERNET;
	switch (be16(ip - 2)) {
	case ETHER_IPV4:
		return ip[0] >> 4 == 4 && be16(ip + 2) >= 20 && be16(ip + 2) <= room;
	case ETHER_IPV6:
		return ip[0] >> 4 == 6 && be16(ip + 4) + 40u <= room;
	}
	return false;
}

/* Version 3: SESSION:32 (0: no data) [COOKIE:32 or 64] [FLAGS:32] ETHERNET. Which of the optional
 * fields are there was said when the session began: the frame is where one fits. */
static enum packet_what l2tp3(struct cursor c, struct packet *out)
{
	if (c.len < 4 || !be32(c.p) || !into(&c, 4))
		return PACKET_OTHER;
	for (size_t at = 0; at <= 12; at += 4)
		if (is_ethernet(&c, at))
			return skip(&c, at) ? ethernet(c, out) : PACKET_OTHER;
	return PACKET_OTHER;
}

/* FLAGS:16 [LEN:16] TUNNEL:16 SESSION:16 [SENT:16 RECEIVED:16] [OFFSET:16 PAD], PPP; a first bit of
 * 1: no data (RFC 2661) */
static enum packet_what l2tp(struct cursor c, struct packet *out)
{
	unsigned flags;
	size_t head;

	if (c.len < 6)
		return PACKET_OTHER;
	flags = be16(c.p);
	if (flags == 3) /* FLAGS:16 0:16, as without UDP */
		return skip(&c, 4) ? l2tp3(c, out) : PACKET_OTHER;
	if (flags & 0x8000 || (flags & 15) != 2)
		return PACKET_OTHER;
	head = 6u + (flags & 0x4000 ? 2 : 0) + (flags & 0x0800 ? 4 : 0);
	if (flags & 0x0200) {
		if (c.len < head + 2)
			return PACKET_OTHER;
		head += 2u + be16(c.p + head);
	}
	return skip(&c, head) ? ppp(c, out) : PACKET_OTHER;
}

/* VERSION:2 (0) CONTROL:1 WORDS:5 (of 4 bytes) PROTOCOL:8 FLAGS:16 ...; version 1: an IP packet,
 * whose first bits these are */
static enum packet_what gue(struct cursor c, struct packet *out)
{
	uint8_t protocol;

	if (c.len < 4)
		return PACKET_OTHER;
	if (c.p[0] >> 6 == 1)
		return into(&c, 0) ? network(c, out) : PACKET_OTHER;
	if (c.p[0] >> 5)
		return PACKET_OTHER;
	protocol = c.p[1];
	return into(&c, 4 + (c.p[0] & 0x1fu) * 4) ? transport(protocol, c, out) : PACKET_OTHER;
}

/* The packet inside a datagram to a tunnel's port; PACKET_OTHER: it is no tunnel. */
static enum packet_what carried(uint16_t port, struct cursor c, struct packet *out)
{
	switch (port) {
	case PORT_VXLAN:
	case PORT_VXLAN_OLD:
	case PORT_VXLAN_GPE:
		return vxlan(c, port == PORT_VXLAN_GPE, out);
	case PORT_GENEVE:
		return geneve(c, out);
	case PORT_MPLS:
		return mpls(c, out);
	case PORT_GTP:
		return gtp(c, out);
	case PORT_L2TP:
		return l2tp(c, out);
	case PORT_GUE:
		return gue(c, out);
	}
	return PACKET_OTHER;
}

/* ---- transport ---- */

static enum packet_what udp(struct cursor c, struct packet *out)
{
	struct packet inner = {0};
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
	inner.what = carried(out->to.port, c, &inner);
	if (inner.what != PACKET_OTHER) {
		*out = inner;
		return inner.what;
	}
	out->bytes = c.p;
	out->len = c.len;
	out->size = c.size;
	return PACKET_UDP;
}

static enum packet_what transport(uint8_t protocol, struct cursor c, struct packet *out)
{
	uint8_t next;

	switch (protocol) {
	case IP_TCP:
		return tcp(c, out);
	case IP_UDP:
		return udp(c, out);
	case IP_IPV4:
	case IP_IPV6:
		return into(&c, 0) ? network(c, out) : PACKET_OTHER;
	case IP_GRE:
		return gre(c, out);
	case IP_MPLS:
		return mpls(c, out);
	case IP_L2TP:
		return l2tp3(c, out);
	case IP_AH:
		if (c.len < 8)
			return PACKET_OTHER;
		next = c.p[0];
		return skip(&c, ((size_t)c.p[1] + 2) * 4) && ++c.tunnels <= PACKET_TUNNELS ?
			       transport(next, c, out) :
			       PACKET_OTHER;
	}
	return PACKET_OTHER;
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
					 .tunnels = (uint8_t)(c.tunnels + 1),
					 .more = part & 0x2000};
	*out = (struct packet){0}; /* forget the outer packet's addresses */
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
	*out = (struct packet){.v6 = true};
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
							      .tunnels = (uint8_t)(c.tunnels + 1),
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

static bool is_tag(uint16_t type)
{
	return type == ETHER_VLAN || type == ETHER_QINQ || type == 0x9100 || type == 0x9200;
}

static enum packet_what ether(uint16_t type, struct cursor c, struct packet *out)
{
	for (int i = 0; i < EXTENSIONS_MAX && is_tag(type); i++) {
		if (c.len < 4)
			return PACKET_OTHER;
		type = be16(c.p + 2);
		skip(&c, 4);
	}
	if (type < ETHER_LEAST)
		return snap(c, out);
	switch (type) {
	case ETHER_IPV4:
		return ipv4(c, out);
	case ETHER_IPV6:
		return ipv6(c, out);
	case ETHER_MPLS:
	case ETHER_MPLS_UP:
		return mpls(c, out);
	case ETHER_PPPOE:
		return pppoe(c, out);
	case ETHER_PROVIDER:
		return into(&c, 4) ? ethernet(c, out) : PACKET_OTHER;
	case ETHER_NSH:
		return nsh(c, out);
	}
	return PACKET_OTHER;
}

static enum packet_what snap(struct cursor c, struct packet *out)
{
	static const uint8_t head[] = {0xaa, 0xaa, 3, 0, 0, 0};
	const uint8_t *p = c.p;

	if (c.len < HEAD_SNAP || memcmp(p, head, sizeof(head)) || !into(&c, HEAD_SNAP))
		return PACKET_OTHER;
	return ether(be16(p + 6), c, out); /* which may be the next such head */
}

static enum packet_what ethernet(struct cursor c, struct packet *out)
{
	const uint8_t *p = c.p;

	return skip(&c, HEAD_ETHERNET) ? ether(be16(p + 12), c, out) : PACKET_OTHER;
}

/* FAMILY:8 0:8 GROUP:16, then fields: LEN:16 (with this head) KIND:16 VALUE, padded to 4; in the
 * host's order, which is taken for little endian. */
static enum packet_what nflog(struct cursor c, struct packet *out)
{
	if (!skip(&c, 4))
		return PACKET_OTHER;
	for (int i = 0; i < NFLOG_FIELDS && c.len >= 4; i++) {
		const size_t len = (size_t)(c.p[0] | c.p[1] << 8);
		const unsigned kind = c.p[2] | (unsigned)c.p[3] << 8;

		if (len < 4)
			return PACKET_OTHER;
		if (kind == NFLOG_PAYLOAD) {
			trim(&c, len);
			return skip(&c, 4) ? network(c, out) : PACKET_OTHER;
		}
		if (!skip(&c, (len + 3) & ~(size_t)3))
			return PACKET_OTHER;
	}
	return PACKET_OTHER;
}

bool packet_link_known(int link)
{
	static const int known[] = {LINK_NULL,     LINK_ETHERNET, LINK_PPP,   LINK_RAW_BSD,
				    LINK_RAW_OPEN, LINK_PPP_HDLC, LINK_PPPOE, LINK_RAW,
				    LINK_C_HDLC,   LINK_LOOP,     LINK_SLL,   LINK_IPV4,
				    LINK_IPV6,     LINK_NFLOG,    LINK_SLL2};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i] == link)
			return true;
	return false;
}

enum packet_what packet_of_fragments(const struct packet *of, const uint8_t *bytes, size_t len,
				     size_t size, struct packet *out)
{
	*out = (struct packet){.v6 = of->v6, .from = of->from, .to = of->to};
	out->what = transport(of->fragment.protocol,
			      (struct cursor){bytes, len, size, of->fragment.tunnels}, out);
	return out->what;
}

enum packet_what packet_parse(int link, const uint8_t *bytes, size_t len, size_t size,
			      struct packet *out)
{
	struct cursor c = {bytes, len, size > len ? size : len, 0};
	size_t head = link == LINK_ETHERNET                                         ? 14 :
		      link == LINK_SLL                                              ? 16 :
		      link == LINK_SLL2                                             ? 20 :
		      link == LINK_NULL || link == LINK_LOOP || link == LINK_C_HDLC ? 4 :
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
	case LINK_C_HDLC: /* ADDRESS:8 CONTROL:8 TYPE:16 */
		out->what = ether(be16(p + 2), c, out);
		break;
	case LINK_PPP:
	case LINK_PPP_HDLC:
		out->what = ppp(c, out);
		break;
	case LINK_PPPOE:
		out->what = pppoe(c, out);
		break;
	case LINK_NFLOG:
		out->what = nflog(c, out);
		break;
	default:
		out->what = network(c, out);
		break; /* the family of a loopback header differs by system: the packet has the
			  version */
	}
	return out->what;
}
