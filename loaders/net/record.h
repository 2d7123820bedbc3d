/* SPDX-License-Identifier: Apache-2.0 */
/* record: what a record of a socket says (probes/net.h): bytes, how it ended, its addresses, and
 * what tells both ends of a connection to be one. Pure. */
#ifndef SONDE_NET_RECORD_H
#define SONDE_NET_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/net.h"

/* How a connection ended. */
enum record_result {
	RECORD_OPEN = 0, /* it did not */
	RECORD_CLOSED,
	RECORD_RESET_IN,
	RECORD_RESET_OUT,
	RECORD_BROKEN, /* it was established */
	RECORD_REFUSED,
	RECORD_TIMED_OUT,
	RECORD_UNREACHABLE,
	RECORD_GIVEN_UP,
	RECORD_FAILED, /* it was not */
	RECORD_RESULTS
};
extern const char *const RECORD_RESULT_NAMES[RECORD_RESULTS]; /* as flow_row's columns; "open" */

/* Is it long enough, and in itself possible? */
bool record_sound(const void *record, size_t size);

enum record_result record_result(const struct net_record *r);
/* Was it established? Of one without an entry the state that it left says so. */
bool record_opened(const struct net_record *r);

/* Bytes of the program's, acknowledged and received: SYN and FIN have a number each too
 * (net/ipv4/tcp_input.c counts them). */
uint64_t record_tx(const struct net_record *r);
uint64_t record_rx(const struct net_record *r);
/* Segments that it retransmitted, without the responses that its listener sent. */
uint32_t record_retrans(const struct net_record *r);

/*
 * Both ends know both first sequence numbers (RFC 9293, 3.4), and no NAT on the way changes them:
 * the client's and the server's, one behind the SYN. They follow from what the kernel counts, at
 * any time: what was acknowledged up to snd_una, and what was received up to rcv_nxt. A client's
 * `acked` counts its SYN, a server's does not. So of a connection that was open before, each end
 * has two pairs, as if it were the client and as if it were the server; only the right ones meet.
 */
uint64_t record_pair(const struct net_record *r, enum net_side as);

/* The same for the store, for both ends on two hosts: it does not reveal the sequence numbers. 60
 * bits, never 0. */
uint64_t record_mark(const struct net_record *r, enum net_side as);

#define RECORD_ADDRESS 48
/* "10.0.0.5"; an IPv6 address that holds an IPv4 one is that. "" of another family. */
const char *record_address(uint16_t family, const uint8_t at[16], char buf[RECORD_ADDRESS]);
/* The same as IPv4 where it is one, in place. */
void record_unmap(uint16_t *family, uint8_t at[16]);
/* Is it an address that only this host reaches? */
bool record_is_loopback(uint16_t family, const uint8_t at[16]);

#endif
