/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traceid: what a request's header says of the trace that it is part of: the trace's id, and the
 * span of who sent it.
 *
 *   TRACEID_W3C      traceparent: 00-TRACE-SPAN-01 (W3C Trace Context)
 *   TRACEID_B3       b3: TRACE-SPAN[-sampled[-parent]], or a decision alone, which names no trace
 *                    (B3 single header)
 *   TRACEID_UBER     uber-trace-id: TRACE:SPAN:PARENT:FLAGS, colons perhaps as %3A (Jaeger)
 *   TRACEID_REQUEST  x-request-id: a UUID, or 32 hexadecimal digits; other values
 *                    have a meaning only to the program
 *   TRACEID_PLAIN    x-b3-traceid: TRACE
 *   TRACEID_SW8      sw8: 1-TRACE-SEGMENT-SPAN-... (SkyWalking), whose trace is in base64
 *
 * Ids are hexadecimal digits, 1 to 32 of a trace, 1 to 16 of a span; a trace of zeros alone is
 * none. Sources: the specifications named.
 */
#ifndef SONDE_PROTOCOLS_TRACEID_H
#define SONDE_PROTOCOLS_TRACEID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum traceid_form {
	TRACEID_W3C,
	TRACEID_B3,
	TRACEID_UBER,
	TRACEID_REQUEST,
	TRACEID_PLAIN,
	TRACEID_SW8
};

struct traceid {
	const uint8_t *text; /* the trace's, borrowed from the header; NULL: none */
	size_t n;
	uint64_t caller; /* span of who sent the request; 0: not said */
};

/* false: it names no trace; out is untouched. */
bool traceid_read(enum traceid_form form, const uint8_t *value, size_t n, struct traceid *out);
/* A span's id alone (x-b3-spanid); 0: none. */
uint64_t traceid_span(const uint8_t *value, size_t n);

#endif
