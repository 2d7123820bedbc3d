/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture: the packets of a file, one after the other: pcap by libpcap, pcapng by pcapng.h. Packets
 * of links that are not known here (packet_link_known) are given as any other where a file may
 * have several (pcapng); a pcap file of such a link is refused.
 */
#ifndef SONDE_REPLAY_CAPTURE_H
#define SONDE_REPLAY_CAPTURE_H

#include "loaders/replay/pcapng.h"
#include "schema/base/err.h"

struct capture;

/* `path`: "-" is standard input. */
int capture_open(const char *path, struct capture **out, struct err *e);
/* 1: a packet, whose bytes are borrowed until the next call; 0: the end; -errno: what follows
 * cannot be read, capture_why says why. */
int capture_next(struct capture *c, struct pcapng_packet *out);
const char *capture_why(const struct capture *c);
void capture_close(struct capture *c);
/* The name of a link, as libpcap has it. */
const char *capture_link_name(int link);

#endif
