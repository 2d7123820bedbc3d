/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_records_fuzz: records of any bytes are taken, waited for and forgotten within their bounds,
 * and counts of any text are no negative numbers.
 *
 * covers: loaders/net/record.c loaders/net/conns.c loaders/net/others.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/net/conns.h"
#include "loaders/net/others.h"
#include "loaders/net/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void look(const struct conns *cs, const struct conn *c)
{
	enum net_owner_how how;
	char buf[RECORD_ADDRESS];

	if (record_result(&c->r) >= RECORD_RESULTS ||
	    strlen(record_address(c->r.family, c->r.peer, buf)) >= sizeof(buf))
		abort();
	(void)(record_tx(&c->r) + record_rx(&c->r) + record_retrans(&c->r));
	(void)record_is_loopback(c->r.family, c->r.local);
	(void)conns_mate(cs, c);
	(void)conns_owner(cs, c, &how);
	(void)conns_side(cs, c);
}

static void edge(void *ctx, const struct others_edge *x)
{
	if (strlen(x->peer) >= sizeof(x->peer) || x->side > NET_SIDE_SERVER)
		abort();
	*(size_t *)ctx += strlen(x->peer);
}

static void descriptors(const uint8_t *data, size_t len)
{
	struct others os = {0};
	struct net_other o;
	size_t n = 0;

	for (size_t at = 0; at + sizeof(o) <= len; at += sizeof(o)) {
		memcpy(&o, data + at, sizeof(o));
		o.r.what = NET_OTHER;
		o.peer_sk &= 7;
		o.r.sk &= 7;
		if (record_sound(&o, sizeof(o)))
			others_add(&os, &o);
	}
	others_each(&os, false, edge, &n);
	others_each(&os, true, edge, &n);
	others_release(&os);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct conns cs = {0};
	struct net_record r;
	struct conn *c;
	int64_t now = 0;

	for (size_t at = 0; at + sizeof(r) <= len; at += sizeof(r)) {
		memcpy(&r, data + at, sizeof(r));
		r.sk &= 3;
		r.begin_ns &= 3;
		if (!record_sound(&r, sizeof(r)))
			continue;
		c = conns_take(&cs, &r);
		if (c)
			look(&cs, c);
		now = (int64_t)(r.time_ns >> 2);
		while ((c = conns_next(&cs, now, now, r.lport & 1))) {
			look(&cs, c);
			conns_forget(&cs, c);
		}
	}
	conns_release(&cs);
	descriptors(data, len);
	return 0;
}
