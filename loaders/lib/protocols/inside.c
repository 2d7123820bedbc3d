/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside: TLS that begins in the midst of a connection. The client asks for it in the clear
 * protocol (MySQL's SSLRequest), or begins at once after the server's first message (NATS); what
 * was said until then is needed to read what follows inside: the server's abilities, who speaks
 * next.
 *
 * The clear connection keeps the protocol and its state aside while it reads the handshake. The
 * owner of the clear text makes a second connection of it, which takes the state over.
 */
#include <stdlib.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"

void proto_inner_free(struct proto_conn *c)
{
	const struct protocol *inner = c->inner;
	void *state = c->state;

	if (!inner)
		return;
	c->inner = NULL;
	c->state = c->inner_state;
	if (inner->release)
		inner->release(c);
	free(c->state);
	c->state = state;
	c->inner_state = NULL;
}

/* Nothing more is known of it under its present protocol, whose state is kept. */
static void set_aside(struct proto_conn *c)
{
	proto_tell_all(c);
	proto_all_blind(c, PROTO_BLIND);
	proto_inner_free(c);
	c->inner = c->protocol;
	c->inner_state = c->state;
	c->protocol = NULL;
	c->state = NULL;
}

void proto_upgrade(struct proto_conn *c)
{
	set_aside(c);
	proto_switch(c, &protocol_tls);
}

void proto_conn_inside(struct proto_conn *c, struct proto_conn *outer)
{
	if (!outer->inner && outer->protocol && outer->protocol->upgrades)
		set_aside(outer); /* the handshake was not seen */
	if (!outer->inner)
		return;
	c->protocol = outer->inner;
	c->state = outer->inner_state;
	c->turned = outer->turned;
	c->begun = c->role_known = true;
	outer->inner = NULL;
	outer->inner_state = NULL;
}
