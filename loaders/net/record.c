/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/record.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* clang-format off */
const char *const RECORD_RESULT_NAMES[RECORD_RESULTS] = {
	[RECORD_OPEN] = "open", [RECORD_CLOSED] = "closed", [RECORD_RESET_IN] = "reset_in", [RECORD_RESET_OUT] = "reset_out",
	[RECORD_BROKEN] = "broken", [RECORD_REFUSED] = "refused", [RECORD_TIMED_OUT] = "timed_out", [RECORD_UNREACHABLE] = "unreachable",
	[RECORD_GIVEN_UP] = "given_up", [RECORD_FAILED] = "failed",
};
/* clang-format on */

bool record_sound(const void *record, size_t size)
{
	const struct net_record *r = record;

	return size >= sizeof(*r) && r->what >= NET_END && r->what <= NET_OTHER &&
	       r->side <= NET_SIDE_LISTENER && r->how <= NET_OWNER_LISTENER &&
	       (r->what != NET_OTHER || (size >= sizeof(struct net_other) &&
					 ((const struct net_other *)record)->path_len <= NET_PATH));
}

/* SYN_SENT or SYN_RECV -> CLOSE. */
static enum record_result unopened(const struct net_record *r)
{
	switch (r->error) {
	case ECONNREFUSED:
		return RECORD_REFUSED;
	case ETIMEDOUT:
		return RECORD_TIMED_OUT;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EACCES:
		return RECORD_UNREACHABLE;
	case 0:
		return r->side == NET_SIDE_CLIENT ? RECORD_GIVEN_UP : RECORD_FAILED;
	default:
		return RECORD_FAILED;
	}
}

/* A close that sends a reset goes from an open state to CLOSE at once, and sends the reset after
 * that; the error is not set yet. */
enum record_result record_result(const struct net_record *r)
{
	if (r->what != NET_END)
		return RECORD_OPEN;
	if (r->state == TCP_SYN_SENT || r->state == TCP_SYN_RECV)
		return unopened(r);
	if (r->flags & NET_F_RESET_IN)
		return RECORD_RESET_IN;
	if (r->error == ETIMEDOUT || r->error == EHOSTUNREACH || r->error == ENETUNREACH)
		return RECORD_BROKEN;
	if (r->flags & NET_F_RESET_OUT || r->error == ECONNRESET || r->state == TCP_ESTABLISHED ||
	    r->state == TCP_CLOSE_WAIT)
		return RECORD_RESET_OUT;
	return RECORD_CLOSED;
}

bool record_opened(const struct net_record *r)
{
	return r->established_ns ||
	       (r->flags & NET_F_NO_ENTRY && r->state != TCP_SYN_SENT && r->state != TCP_SYN_RECV);
}

static bool fin_acked(const struct net_record *r)
{
	return r->flags & NET_F_FIN_SENT && r->snd_una == r->write_seq;
}

uint64_t record_tx(const struct net_record *r)
{
	uint64_t beside = (r->side == NET_SIDE_CLIENT && !(r->flags & NET_F_STANDING)) +
			  (uint64_t)fin_acked(r);

	return r->acked > beside ? r->acked - beside : 0;
}

uint64_t record_rx(const struct net_record *r)
{
	uint64_t beside = r->flags & NET_F_FIN_IN ? 1 : 0;

	return r->received > beside ? r->received - beside : 0;
}

uint32_t record_retrans(const struct net_record *r)
{
	return r->side == NET_SIDE_SERVER && r->retrans >= r->repeated ? r->retrans - r->repeated :
									 r->retrans;
}

uint64_t record_pair(const struct net_record *r, enum net_side as)
{
	uint32_t own = r->snd_una - (uint32_t)r->acked + (as == NET_SIDE_CLIENT),
		 other = r->rcv_nxt - (uint32_t)r->received;

	return as == NET_SIDE_CLIENT ? (uint64_t)own << 32 | other : (uint64_t)other << 32 | own;
}

#define ROTATED(x_, n_) ((x_) << (n_) | (x_) >> (64 - (n_)))

/* SipHash's round (Aumasson and Bernstein, 2012) */
static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = ROTATED(v[1], 13) ^ v[0];
	v[3] = ROTATED(v[3], 16) ^ v[2];
	v[0] = ROTATED(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = ROTATED(v[3], 21) ^ v[0];
	v[1] = ROTATED(v[1], 17) ^ v[2];
	v[2] = ROTATED(v[2], 32);
}

/* SipHash-2-4 of eight bytes under the key 0: it cannot be turned back as a table's hash can. */
static uint64_t one_way(uint64_t word)
{
	uint64_t v[4] = {0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
			 0x7465646279746573},
		 words[2] = {word, 8ull << 56};

	for (int i = 0; i < 2; i++) {
		v[3] ^= words[i];
		sip_round(v);
		sip_round(v);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t record_mark(const struct net_record *r, enum net_side as)
{
	uint64_t mark = one_way(record_pair(r, as)) >> 4; /* a number of the store: FACTS_MOST */

	return mark ? mark : 1;
}

void record_unmap(uint16_t *family, uint8_t at[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (*family != AF_INET6 || memcmp(at, mapped, sizeof(mapped)))
		return;
	*family = AF_INET;
	memmove(at, at + 12, 4);
	memset(at + 4, 0, 12);
}

const char *record_address(uint16_t family, const uint8_t at[16], char buf[RECORD_ADDRESS])
{
	uint8_t own[16];

	*buf = '\0';
	memcpy(own, at, sizeof(own));
	record_unmap(&family, own);
	if (family == AF_INET || family == AF_INET6)
		inet_ntop(family, own, buf, RECORD_ADDRESS);
	return buf;
}

bool record_is_loopback(uint16_t family, const uint8_t at[16])
{
	static const uint8_t one[16] = {[15] = 1};
	uint8_t own[16];

	memcpy(own, at, sizeof(own));
	record_unmap(&family, own);
	return family == AF_INET ? own[0] == 127 :
				   family == AF_INET6 && !memcmp(own, one, sizeof(one));
}
