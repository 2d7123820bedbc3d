/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcapng: the packets of a capture in that format (draft-ietf-opsawg-pcapng), block by block.
 * libpcap ends where an interface differs from the first one in its link type, snap length or
 * clock; what merges captures, and what captures on several interfaces, writes such files.
 *
 *   block       TYPE:32 SIZE:32 BODY SIZE:32, in the section's byte order, of a multiple of 4 bytes
 *   0A0D0D0A    a section begins: 1A2B3C4D:32, which tells the order, ...
 *   1           an interface: LINK:16 0:16 SNAP:32 OPTIONS; numbered from 0 in each section
 *   6           a packet: INTERFACE:32 TIME:64 (upper half first) LEN:32 SIZE:32 BYTES OPTIONS
 *   3           a packet of interface 0, without a time: SIZE:32 BYTES
 *   2           as 6, of old: INTERFACE:16 DROPS:16 TIME:64 LEN:32 SIZE:32 BYTES
 *   option      CODE:16 LEN:16 VALUE, padded to 4; 0 ends them. 9: parts of a second, as 10^-v, or
 *               with the upper bit as 2^-v (else 10^-6); 14: seconds to add:64
 *
 * Other blocks are passed over. Pure: the reader of the file brings the blocks.
 */
#ifndef SONDE_REPLAY_PCAPNG_H
#define SONDE_REPLAY_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#define PCAPNG_MAGIC      0x0a0d0d0aU /* the same in both byte orders */
#define PCAPNG_HEAD       12          /* of a block, by which its size is known */
#define PCAPNG_BLOCK      (64u << 20) /* the largest that is read */
#define PCAPNG_INTERFACES 65536       /* of a section */

struct pcapng;

struct pcapng_packet {
	int link;
	int64_t at_ns; /* since 1970; from 0 on. Without a time: that of the packet before it */
	const uint8_t *bytes; /* in the block */
	size_t len, size;     /* captured, on the wire */
};

struct pcapng *pcapng_new(void);
void pcapng_free(struct pcapng *x);
/* The size of the block that begins so, PCAPNG_HEAD to PCAPNG_BLOCK; 0: it cannot be one. */
size_t pcapng_size(const struct pcapng *x, const uint8_t head[PCAPNG_HEAD]);
/* A whole block of that size. 1: a packet; 0: it was something else; -EPROTO: it makes no sense. */
int pcapng_block(struct pcapng *x, const uint8_t *block, size_t size, struct pcapng_packet *out);

#endif
