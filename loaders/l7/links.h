/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links: the latest requests that have a parent, so that a single request which is kept can be
 * kept with all requests made while it was served.
 *
 *   span     a request's own id of 60 bits, 0: none. A server's side makes it of its process and of
 *            the time its first bytes were read, if no other request was open on the connection:
 *            the threads that serve it are tagged with that (probes/lib/inflight.bpf.h). A client's
 *            side uses the exchange.
 *   exchange made of a connection's two ends and the position of the request's first byte in it:
 *            both ends on one host compute the same one
 *   parent   of a server's side, the client's span; of a client's side, the span of the request
 *            that was being served when it was made; 0: unknown
 *
 * Only the last LINKS are kept: of an older request some may be missing (links_since).
 */
#ifndef SONDE_L7_LINKS_H
#define SONDE_L7_LINKS_H

#include "loaders/l7/parser_message.h"
#include "loaders/lib/protocols/conn.h"

#define LINKS     8192
#define LINKS_KIN 48 /* of one request, at most */
#define LINK_BITS 60

struct link {
	struct msg_process process;
	uint64_t span, parent, caller;
	uint64_t tag;        /* of a server's side, of its samples; 0: none */
	uint64_t newer_than; /* number of the previous one in the same slot; 0: none */
	int64_t begin_ns, first_ns, end_ns;
	uint64_t request_bytes, response_bytes;
	const char *protocol, *operation; /* borrowed from the protocols */
	char *service, *trace;            /* owned; trace NULL: none */
	uint32_t tid;
	uint8_t side, result, how; /* how: enum link_how */
	char status[PROTO_STATUS_MAX];
};

struct links;

struct links *links_new(void);
void links_free(struct links *l);
/* Copied, with its texts. */
void links_put(struct links *l, const struct link *x);
/* All descendants of `span`, parents first, at most LINKS_KIN. The caller owns the array
 * (link_release each, free). *cut: there were more. */
struct link *links_kin(const struct links *l, uint64_t span, uint32_t *n, bool *cut);
void link_release(struct link *x);
/* Links that ended before this may be dropped; 0: none was. */
int64_t links_since(const struct links *l);

/* Span of the request whose first bytes this process read at `tag` (boot clock). */
uint64_t link_span(const struct msg_process *p, uint64_t tag);
/* An id made of a hash. */
uint64_t link_id(uint64_t hash);

#endif
