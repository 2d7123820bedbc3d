/* SPDX-License-Identifier: Apache-2.0 */
/* midway: see the header. A trial reports nothing, and its names are apart from those of
 * connections. */
#include "loaders/lib/protocols/midway.h"

#include "loaders/lib/protocols/names.h"

bool midway_reads(const struct proto_conn *c, uint32_t skip, bool swapped, const struct protocol *p)
{
	struct proto_conn *trial =
		proto_conn_new(protocols_trial(c->of), false, c->datagram, c->port, NULL);
	bool reads;

	trial->role_known = true;
	proto_become(trial, p, false);
	for (uint32_t i = skip; i < c->seen->n && !trial->strayed; i++) {
		const struct seen_piece *s = &c->seen->pieces[i];
		const struct proto_piece piece = {.from = swapped ? !s->from : s->from,
						  .pos = s->pos,
						  .at_ns = s->at_ns,
						  .bytes = c->seen->bytes + s->at,
						  .len = s->len,
						  .size = s->size};

		proto_conn_feed(trial, &piece);
	}
	reads = !trial->strayed;
	proto_conn_free(trial);
	return reads;
}
