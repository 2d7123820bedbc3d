/* SPDX-License-Identifier: Apache-2.0 */
/* connask: what may be asked of a connection (conn.h). */
#include "loaders/lib/protocols/protocol.h"

const char *proto_conn_protocol(const struct proto_conn *c)
{
	return c->protocol ? c->protocol->name : "";
}

bool proto_conn_swapped(const struct proto_conn *c)
{
	return c->turned;
}

uint64_t proto_conn_blind_bytes(const struct proto_conn *c)
{
	return c->dir[0].blind_bytes + c->dir[1].blind_bytes;
}

uint64_t proto_conn_skips(const struct proto_conn *c, enum proto_side from)
{
	const struct proto_dir *d = &c->dir[c->turned ? !from : from];

	if (!c->protocol || c->datagram)
		return 0;
	return d->skipping_all ? UINT64_MAX : d->len ? 0 : d->skip;
}

size_t proto_conn_needed(const struct proto_conn *c)
{
	return c->needed;
}

bool proto_conn_hopeless(const struct proto_conn *c)
{
	return c->given_up;
}
