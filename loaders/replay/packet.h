/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packet: a captured packet's addresses, ports and payload. Pure over bytes.
 *
 * Links: Ethernet (SNAP, too), Linux cooked 1 and 2 ("any"), raw IP, BSD loopback, PPP, Cisco
 * HDLC, NFLOG; up to 8 VLAN tags; IPv4, IPv6 with its extension headers; TCP and UDP. Of a tunnel,
 * the inner packet counts: VXLAN, Geneve, GRE (NVGRE, PPTP, ERSPAN), IP in IP, MPLS, PPPoE, L2TP,
 * GTP, GUE, NSH, 802.1ah, nested up to PACKET_TUNNELS deep. A datagram to a tunnel's port without
 * such content is a plain datagram. PACKET_FRAGMENT: a part of an IP packet, without ports
 * (fragments.h). Checksums are not looked at (captures of the sender have none yet).
 */
#ifndef SONDE_REPLAY_PACKET_H
#define SONDE_REPLAY_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_TUNNELS 8
#define PACKET_READ    "VXLAN, Geneve, GRE, IP in IP, MPLS, PPPoE, L2TP, GTP, GUE, NSH, 802.1ah"
#define PACKET_LINKS   "Ethernet, Linux cooked, raw IP, loopback, PPP, Cisco HDLC and NFLOG"

enum packet_what { PACKET_OTHER, PACKET_TCP, PACKET_UDP, PACKET_FRAGMENT };
enum { PACKET_FIN = 1, PACKET_SYN = 2, PACKET_RST = 4, PACKET_ACK = 16 };

struct packet_end {
	uint8_t address[16]; /* IPv4: the first four, the rest 0 */
	uint16_t port;
};

struct packet {
	enum packet_what what;
	bool v6;
	struct packet_end from, to;
	uint32_t seq, ack;
	uint8_t flags;
	const uint8_t *bytes; /* payload that was captured */
	size_t len, size;     /* captured; on the wire */
	struct packet_fragment {
		uint32_t id;
		uint16_t offset; /* bytes */
		uint8_t protocol;
		uint8_t tunnels; /* depth of tunnels, the reassembled packet included */
		bool more;       /* it is not the last */
	} fragment;
};

/* The numbers of libpcap (DLT_*) that are known here. */
bool packet_link_known(int link);
/* `size`: as it was on the wire (>= len). */
enum packet_what packet_parse(int link, const uint8_t *bytes, size_t len, size_t size,
			      struct packet *out);

/* What the fragments of `of` hold together. */
enum packet_what packet_of_fragments(const struct packet *of, const uint8_t *bytes, size_t len,
				     size_t size, struct packet *out);

#endif
