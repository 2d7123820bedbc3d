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

const char *proto_result_name(enum proto_result r)
{
	static const char *const names[PROTO_RESULTS] = {"ok",     "error",     "one-way",
							 "opened", "no-answer", "blind"};

	return (unsigned)r < PROTO_RESULTS ? names[r] : "";
}

size_t proto_conn_open(const struct proto_conn *c)
{
	size_t n = c->done.set;

	for (uint32_t i = 0; i < c->count; i++)
		n += c->pending[(c->head + i) & (c->cap - 1)].live;
	return n;
}
