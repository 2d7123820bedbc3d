/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_request: where the time of some requests went, as statements: on the CPU, ready without
 * one, in which waits, and in which requests to others.
 *
 *  1. The requests are single ones that were kept, each once (explain_chosen.h).
 *  2. Time is that of the threads that served them, by the tags of their samples: CPU time
 * estimated from samples, exact times of waits (those whose stack was taken, and all of 250 us or
 * more).
 *  3. What no sample tells is shown by its reason: the time between the first and the last byte of
 * the answers, requests without any sample (a loop that has several open, work handed over),
 * requests that share their connection with others, requests of
 * which only the client was seen; and the rest as untagged: waits without a stack.
 *  4. Requests to others come from the requests' trees (tools/requests/traces.h). Their time is
 * part of the waits, since a thread usually waits for the answer.
 *  5. So does the time in monitors and locks of Java (explain_java.h), by what and who had it.
 *  6. What had the CPU meanwhile is known for all CPU waits of the same command, not for single
 * ones.
 */
#ifndef SONDE_TOOLS_EXPLAIN_REQUEST_H
#define SONDE_TOOLS_EXPLAIN_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"
#include "tools/explain/explain_chosen.h"
#include "tools/requests/reqtags.h"
#include "tools/select/select.h"

enum reqpart_what {
	REQPART_CPU,
	REQPART_WAIT,
	REQPART_READY,
	REQPART_UNTAGGED,
	REQPART_ASKED,
	REQPART_ANSWERING, /* between the first and the last byte of the answer */
	REQPART_UNSAMPLED, /* n requests without any sample */
	REQPART_SHARED,    /* n requests that were not alone on their connection */
	REQPART_JAVA,      /* n waits for a monitor or lock of Java: parts of the waits */
	REQPART_ELSEWHERE  /* n requests whose server is not in the selection */
};

struct reqpart {
	enum reqpart_what what;
	uint64_t ns, n; /* n: waits, samples, requests asked; 0: not known */
	char *who; /* command of the threads; of ASKED that of the server, else the service; NULL */
	char *reason;   /* of WAIT: "lock", ...; of JAVA: "monitor" or "lock" */
	char *function; /* of its largest part; NULL */
	char *object, *peer,
		*by; /* of WAIT: what that was on, who has the other end of that (netpeers.h), who
			ended most of that; of READY: by, who had the CPU; of JAVA: object, the
			class, by, the thread that had it, function, "Shop.pay:42"; NULL */
	uint32_t by_tid;
	char *operation, *service, *protocol; /* of ASKED */
};

struct reqexplain {
	struct reqtags tags; /* of those that samples can have */
	struct explain_chosen chosen;
	bool cpu, offcpu; /* these families were recorded */
	struct reqpart *parts;
	size_t n, cap;    /* most time first; behind the others what waits were for: JAVA, ASKED */
	uint64_t took_ns; /* of all requests together */
};

/* EXIT_NOTHING where no such request was kept. Release in any case. */
int explain_request(const struct selection *sel, const char *request, const char *slower,
		    struct reqexplain *out, struct err *e);
void explain_request_release(struct reqexplain *x);
/* "52.1 %, 400 ms: web waited for a lock; the largest part in serve_locked, ended by hold 812" */
void explain_request_say(const struct reqexplain *x, const struct reqpart *p, struct strbuf *out);
const char *explain_request_what(
	enum reqpart_what what); /* "cpu", "wait", "run queue", "untagged", "asked", "answering",
				    "unsampled", "shared", "java", "elsewhere" */
/* 0: a part of the requests' time of its own; else one that is within others: in groups, in this
 * order. */
int explain_request_within(enum reqpart_what what);
/* How many requests of whom, and how long they took: the headline. */
void explain_request_head(const struct reqexplain *x, const char *request, struct strbuf *out);
/* What is not summed, and why; nothing where there is nothing to say. */
void explain_request_others(const struct reqexplain *x, struct strbuf *out);

#endif
