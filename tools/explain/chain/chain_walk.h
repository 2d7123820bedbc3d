/* SPDX-License-Identifier: Apache-2.0 */
/* chain_walk: what the walk and its sentences share (chain.h). */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_WALK_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_WALK_H

#include "tools/explain/chain/chain.h"
#include "tools/explain/chain/chain_silent.h"
#include "tools/requests/reqrunning.h"

struct chain_walk {
	struct chain *out;
	const struct chain_requests *r;
	struct chain_measures *m;
	const struct explain *x; /* of the whole host; NULL */
	const char *hint_store;
	bool failing;         /* requests fail, and take no longer */
	enum chain_sure sure; /* of the links so far */
};

struct chain_at { /* where the walk is */
	const char *who;
	bool container;
	double extra; /* added time, seconds each second */
};

/* What one asked of one service. */
struct chain_asked {
	const struct chain_op *op; /* that took the most added time */
	double extra;              /* of all operations, with failures as CHAIN_FAILED_S each */
	double failed;             /* more failures each second than before */
	uint64_t n;                /* requests in the window */
};

struct chain_cause {
	enum chain_what what;
	double extra;
	struct chain_measure m;
};

/* Is it that one's, as server or client? */
bool chain_is_at(const struct chain_op *op, const struct chain_at *at);
/* Causes at one place, most added time first. asked: without the time that it waited for
 * others. Returns how many. */
size_t chain_causes(const struct chain_walk *w, const struct chain_at *at, bool asked,
		    struct chain_cause list[CHAIN_WHATS]);
/* Waits that are idle by nature, of which most are not of these requests: they are far more than
 * the added time (rule 5). */
bool chain_is_apart(const struct chain_at *at, const struct chain_cause *c);
/* The link with `what` is added; NULL: there is no room. Its text and command are then made by one
 * of the functions below. */
struct chain_link *chain_link_add(struct chain_walk *w, const char *what, const struct chain_at *at,
				  double share, enum chain_sure sure);

void chain_say_felt(const struct chain_walk *w, struct chain_link *l, const struct chain_op *op,
		    bool slower, bool fails);
void chain_say_asked(const struct chain_walk *w, struct chain_link *l,
		     const struct chain_asked *asked, const struct chain_op *server);
void chain_say_cause(const struct chain_walk *w, struct chain_link *l, const struct chain_cause *c);
/* The time is between client and server: lost packets, refused connections, the server's queue;
 * what the link is called then. */
const char *chain_say_between(const struct chain_walk *w, struct chain_link *l,
			      const struct chain_at *from, const struct chain_asked *asked,
			      const struct chain_op *server);
/* Connections of `from` that were not opened. */
void chain_say_refused(const struct chain_walk *w, struct chain_link *l,
		       const struct chain_at *from, const struct chain_flow *f);
void chain_say_incident(const struct chain_walk *w, struct chain_link *l,
			const struct incident_container *c);
/* It was asked more often: requests each second, before and in the window. */
void chain_say_load(const struct chain_walk *w, struct chain_link *l, const double rate[2]);
/* A file system to which nothing can be written any longer. */
void chain_say_full(const struct chain_walk *w, struct chain_link *l, const struct chain_disk *d);
void chain_say_unknown(const struct chain_walk *w, struct chain_link *l);
/* The hypervisor gave CPU time to others. */
void chain_say_stolen(const struct chain_walk *w, struct chain_link *l);
void chain_say_silent(const struct chain_walk *w, struct chain_link *l,
		      const struct chain_silence *s);
/* `n` requests without an answer, of which this one lasted longest. */
void chain_say_hanging(const struct chain_walk *w, struct chain_link *l,
		       const struct reqrun *longest, size_t n);
/* Nothing stopped it: `gone` asked it before and does so no longer (NULL: not known). */
void chain_say_unasked(const struct chain_walk *w, struct chain_link *l,
		       const struct chain_op *gone);

#endif
