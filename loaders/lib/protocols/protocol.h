/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol: what a protocol's file implements, and what it may ask of the connection. Private to
 * this room; who brings pieces includes conn.h.
 *
 * A protocol sees each side's stream as contiguous bytes from a message boundary on. `step` takes
 * one message (or a part that it knows to begin and end: a chunk, a frame) and says how long it is,
 * which may be more than is there: what it did not look at is passed over without being copied or
 * kept. Where bytes are missing the connection calls `step` a last time with what it has
 * (`last`); then `lost`; then looks at each further byte whether a message `starts` there.
 *
 * Matching. `in_order`: answers come in the order of the questions. The connection then keeps a
 * mark among them where questions or answers may have been lost; from there on nothing is matched
 * until the client speaks again after the server did. Else the protocol finds a question by its id.
 */
#ifndef SONDE_PROTOCOLS_PROTOCOL_H
#define SONDE_PROTOCOLS_PROTOCOL_H

#include "loaders/lib/protocols/bytes.h"
#include "loaders/lib/protocols/conn.h"

/* step: the message goes on beyond n, and what is missing must be seen */
#define PROTO_MORE     0
#define PROTO_LOST     (-1)      /* step: no message begins here, or its end cannot be known */
#define PROTO_ALL      INT64_MAX /* step: all that this side will ever send */
#define PROTO_STEP_MAX (1ll << 40)

#define PROTO_LOOK 4096 /* no more of a text than this is read */

/* What was seen of a connection before it is known whose it is: each side's bytes from its first
 * piece on. */
struct proto_first {
	const uint8_t *client, *server;
	size_t n_client, n_server;
	bool begun;    /* both streams are seen from their first byte on */
	bool last;     /* no more bytes will come before the decision; a side without bytes was not
			  captured */
	bool datagram; /* each piece is a separate message */
	uint16_t port; /* the server's, 0: unknown. Only to choose between what fits as well */
};

enum proto_guess { PROTO_NO, PROTO_MAYBE /* more bytes, please */, PROTO_YES };

/* A question that has no answer yet. */
struct proto_pending {
	uint64_t id;               /* the protocol's own */
	uint32_t operation;        /* proto_name */
	uint32_t tag;              /* the protocol's own */
	int64_t begin_ns, sent_ns; /* its first byte, its last so far */
	int64_t came_ns;           /* proto_request.came_ns */
	int64_t first_ns;          /* the answer's first byte; 0: none yet */
	int64_t over_ns; /* its last one, where that is not when it is reported; 0: it is */
	uint64_t request_bytes, response_bytes;
	const char *as;  /* of another protocol, inside the connection's, whose name this is; NULL:
			    it is not */
	char *trace;     /* the id of a trace that it carries; NULL: none */
	uint64_t caller; /* proto_request.caller */
	uint64_t begin_pos; /* of its message's first byte */
	bool live, hole;    /* answered ones stay until those before them are; hole: see above */
	bool told;          /* reported already: its end is not */
	bool doubt;         /* its answer may have been among bytes that are missing */
};

struct protocol {
	const char *name; /* "http", as it is shown */
	bool in_order;
	bool ids_again;    /* not in order: an id is used again as soon as it is answered */
	bool asked_only;   /* in order, and the server says nothing unasked that is no report */
	bool datagram;     /* only of datagrams */
	bool stream_too;   /* with `datagram`: of both */
	bool upgrades;     /* TLS may begin in its midst, and what was said before holds inside */
	size_t state_size; /* of proto_conn.state, zeroed at the start */
	enum proto_guess (*recognise)(const struct proto_first *f);
	/* Begin a state; `begun`: the stream is seen from its start. May be NULL. */
	void (*begin)(struct proto_conn *c, bool begun);
	/* See the head. `last`: the bytes after n are missing, or n is 64 KiB, the most
	 * that a step may wait for; PROTO_MORE is then as PROTO_LOST. */
	int64_t (*step)(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			bool last);
	/* Could a message of this side begin here? Only after a loss, at any byte; must be hard to
	 * satisfy by chance. NULL: a loss ends all. */
	bool (*starts)(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n);
	/* Bytes of this side are missing: what is half done is over. May be NULL. */
	void (*lost)(struct proto_conn *c, enum proto_side from);
	/* This side will send no more. May be NULL. */
	void (*ended)(struct proto_conn *c, enum proto_side from);
	void (*release)(struct proto_conn *c); /* what the state holds. May be NULL */
};

extern const struct protocol
	*const PROTOCOLS[]; /* NULL-terminated, in the order of asking: the plainest sign first */

struct proto_dir {
	uint8_t *buf; /* the unfinished message; NULL: no such message */
	size_t len, cap;
	uint64_t buf_pos; /* of its first byte */
	uint64_t pos;     /* of the next byte that is expected */
	uint64_t skip;    /* bytes until the next boundary */
	uint64_t skip_of; /* begin_pos of the request that has them already; UINT64_MAX: none */
	int64_t begin_ns,
		came_ns; /* the first byte of the message at hand: as a piece's at_ns and came_ns */
	int64_t last_ns; /* the last piece */
	uint64_t blind_bytes;
	uint64_t left_out;       /* bytes that did not come, and are not needed */
	uint64_t message_pos;    /* of the first byte of the message at hand */
	uint64_t lead_bytes;     /* of it, before it produced a question or report */
	bool going, spoken;      /* going: the last step called proto_goes_on; spoken: the message
				    produced a question or report */
	bool synced, ended, met; /* met: something was seen, so pos holds */
	bool optional; /* the bytes to skip may not come: the request was answered before its
			  body, for which the client waits */
	bool unowned;  /* the message at hand is of a request that is not known: its bytes are blind
			*/
	bool skipping_all, in_message; /* in_message: report `passed` at the end of skip */
};

struct proto_conn {
	struct protocols *of;
	const struct protocol *protocol; /* NULL: not known yet */
	void *state;
	void *user;
	int64_t now_ns, came_ns; /* of the piece at hand */
	struct proto_dir dir[2];
	struct proto_pending *pending; /* a ring of cap (a power of two) */
	uint32_t head, count, cap;
	struct proto_done {
		struct proto_pending p;
		enum proto_result result;
		char status[PROTO_STATUS_MAX];
		enum proto_side from; /* the side whose message it is reported with */
		bool set;
	} done, unasked; /* an answer and a message without a question, whose last byte has not come
			    yet */
	enum proto_result cut;        /* while `cutting`: the result of an incomplete answer */
	struct proto_seen *seen;      /* while not known: the pieces so far */
	const struct protocol *inner; /* what goes on inside TLS (proto_upgrade), and its state */
	void *inner_state;
	uint32_t n_tries;
	enum proto_side before; /* who sent the piece before this */
	uint16_t port;
	const uint8_t *piece;       /* its bytes: where p is this, a piece begins */
	uint64_t piece_pos, at_pos; /* of its first byte; of that of the message at hand */
	uint64_t step_pos;          /* of the current step's first byte */
	size_t piece_len, needed;   /* how many; up to where they were looked at */
	size_t looked;              /* how many bytes of its message a step looked at; 0: all */
	bool together;              /* proto_piece's */
	enum proto_side from;       /* of the current step */
	bool asked;                 /* by the step at hand */
	bool goes_on;               /* likewise: proto_goes_on */
	bool unowned;               /* likewise: proto_unowned */
	bool apart;                 /* likewise: proto_apart */
	bool ends_matter;           /* what is skipped is needed all the same: its end will be */
	bool cutting;
	bool strayed; /* a step found that no message began where one had to */
	bool turn;    /* the piece at hand is the first of its side after the other's */
	bool begun, datagram, role_known, turned, given_up, any_before;
};

static inline void *proto_state(struct proto_conn *c)
{
	return c->state;
}

/* A number for this text, in `c`'s table of operations; too many: that of "<other>". */
uint32_t proto_name(struct proto_conn *c, const char *text, size_t n);
uint32_t proto_namef(struct proto_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * A path or a key as routes_name makes it, among those of the same service: the host that was asked
 * for, where one was named that is no address; else the server's port. What one service has many of
 * must not fold another's names.
 */
size_t proto_route(struct proto_conn *c, const void *host, size_t n_host, const uint8_t *path,
		   size_t n, char mark, char *out);
const char *proto_name_text(const struct proto_conn *c, uint32_t name);
static inline enum proto_payload proto_payload(const struct proto_conn *c)
{
	return protocols_payload(c->of);
}

/* A question has begun with the message at hand. Borrowed until the next call. */
struct proto_pending *proto_ask(struct proto_conn *c, uint32_t operation, uint64_t id);
/* The one that the next answer in order is for; NULL: none, or it cannot be known. */
struct proto_pending *proto_oldest(struct proto_conn *c);
/* The one after the oldest. */
struct proto_pending *proto_second(struct proto_conn *c);
/* The newest one that was asked; NULL: none. */
struct proto_pending *proto_newest(struct proto_conn *c);
struct proto_pending *proto_find(struct proto_conn *c, uint64_t id);
/* The oldest whose id is from `low` to `high`; NULL: none. */
struct proto_pending *proto_between(struct proto_conn *c, uint64_t low, uint64_t high);
/* The message at hand brings an answer's first bytes, as far as it has none yet. */
void proto_first_byte(struct proto_conn *c, struct proto_pending *p);
/* The message at hand is the last of its answer; it is reported when that has passed. `status`: ""
 * or a word, cut to PROTO_STATUS_MAX. */
void proto_answer(struct proto_conn *c, struct proto_pending *p, enum proto_result result,
		  const char *status);
/* As proto_answer, without a latency: a stream has begun. */
void proto_opened(struct proto_conn *c, struct proto_pending *p, const char *status);
/* Drops the question without a report. */
void proto_forget(struct proto_conn *c, struct proto_pending *p);
/* The current message, of either side, gets no answer. It is reported at its end. */
void proto_one_way(struct proto_conn *c, uint32_t operation);
/* The current message is a question whose answer cannot be found. */
void proto_blind(struct proto_conn *c, uint32_t operation);
/* With the current message the server refuses the connection, or rejects what needs no answer: an
 * error without a question. */
void proto_refused(struct proto_conn *c, uint32_t operation, const char *status);
/* The current message continues: the next step of this side belongs to it. Its begin is that of the
 * first step, its end that of the last, and it counts the bytes of all. */
void proto_goes_on(struct proto_conn *c);
/* The current message, or part of one, is of a request that was not seen, and is not counted as
 * blind either: its bytes are blind. With `asked_only` the connection knows it by itself. */
void proto_unowned(struct proto_conn *c);
/* Where answers come in order: the message at hand is the server's own, and no part of one. */
void proto_apart(struct proto_conn *c);
/* The message that went on has ended: a new one begins with this step. */
void proto_begins_anew(struct proto_conn *c);
/* The message continues after the server answered its first part: its time begins with this step.
 */
void proto_begins_here(struct proto_conn *c);
/* From the next byte on, both sides speak this. NULL: find out again what they speak. */
void proto_switch(struct proto_conn *c, const struct protocol *to);
/* From the next byte on, both sides speak TLS; inside it goes on what they speak now. */
void proto_upgrade(struct proto_conn *c);
/* What all connections may unpack (unpack.h). */
struct unpack_budget *proto_unpacks(struct proto_conn *c);
/* A name was answered with this address, of 4 or 16 bytes. */
void proto_named(struct proto_conn *c, const char *name, const uint8_t *address, size_t len);
/* Keep a trace's id with a question: copied. */
void proto_trace(struct proto_pending *p, const uint8_t *text, size_t n);

/* Shared by conn.c and connask.c. slot: question number i, counted from the oldest. all_blind: ends
 * all open questions. mark_hole: nothing beyond this point can be matched. tell: reports what
 * waited for the end of a message. */
struct proto_pending *proto_slot(const struct proto_conn *c, uint32_t i);
void proto_all_blind(struct proto_conn *c, enum proto_result result);
void proto_mark_hole(struct proto_conn *c);
void proto_tell(struct proto_conn *c, enum proto_side from);
void proto_tell_all(struct proto_conn *c);
/* conn.c: from here on both sides speak `to`. */
void proto_become(struct proto_conn *c, const struct protocol *to, bool begun);
/* inside.c: frees what was to go on inside TLS. */
void proto_inner_free(struct proto_conn *c);

#endif
