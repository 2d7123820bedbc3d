/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links: the requests of the last moments that belong to another one, so that one that is kept is
 * kept with all that was asked for it.
 *
 *   span     a request's own id, of 60 bits, 0: none. That of an answer is made of who gave it and
 * when its first bytes were read, if it was alone on its connection: that is what the tag of the
 * threads that serve it says (probes/lib/inflight.bpf.h). That of a question is the exchange's.
 *   exchange made of a connection's two ends and the place of the question's first byte in it: what
 * both ends of one host know alike parent   of an answer, the span of its question; of a question,
 * that of the answer during which it was asked, 0: nobody knows
 *
 * The last LINKS are there: of a request that began before them some may be missing (links_since).
 */
#ifndef SONDE_L7_LINKS_H
#define SONDE_L7_LINKS_H

#include "loaders/l7/parser_message.h"
#include "loaders/lib/protocols/conn.h"

#define LINKS     8192
#define LINKS_KIN 48 /* at most so many of one request */
#define LINK_BITS 60

struct link {
	struct said_who who;
	uint64_t span, parent, caller;
	uint64_t newer_than; /* the one before with the same place in the table */
	int64_t begin_ns, first_ns, end_ns;
	uint64_t asked, answered;
	const char *protocol, *operation; /* the protocols' */
	char *service, *trace;            /* own; trace NULL: none */
	uint32_t tid;
	uint8_t side, result, how; /* how: enum said_how */
	char status[PROTO_STATUS_MAX];
};

struct links;

struct links *links_new(void);
void links_free(struct links *l);
/* Copied, with its texts. */
void links_put(struct links *l, const struct link *x);
/* All that come down from `span`, parents first, at most LINKS_KIN: an array that is the caller's
 * (link_release, free). *cut: there were more. */
struct link *links_kin(const struct links *l, uint64_t span, uint32_t *n, bool *cut);
void link_release(struct link *x);
/* What ended up to here may have been forgotten; 0: nothing was. */
int64_t links_since(const struct links *l);

/* Of who gave an answer whose question's first bytes were read at `tag` (boot clock). */
uint64_t link_span(const struct said_who *who, uint64_t tag);
/* An id of a hash. */
uint64_t link_id(uint64_t hash);

#endif
