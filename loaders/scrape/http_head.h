/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer: what an HTTP server says to a question of HTTP/1.0 (RFC 1945, 7230): a status line,
 * heads, an empty line, and a body until it closes the connection, or as long as Content-Length
 * says. Pure over bytes that a stranger wrote.
 */
#ifndef SONDE_SCRAPE_HTTP_HEAD_H
#define SONDE_SCRAPE_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX (16u << 10)

enum http_head_state {
	ANSWER_MORE, /* its head has not ended */
	ANSWER_OK,
	ANSWER_NO_HTTP,
	ANSWER_CHUNKED /* a form of body that was not asked for */
};

struct http_head {
	unsigned int status;
	size_t body;     /* where it begins */
	uint64_t length; /* of the body; UINT64_MAX: until the end */
	bool tls;        /* Go's server tells that it wants TLS */
};

enum http_head_state http_head_head(const char *bytes, size_t len, struct http_head *out);

/* The page /debug/pprof/ of net/http/pprof, in any of its forms: a row a profile, with its number
 * before its link. *goroutines: how many there are. false: it is another page. */
bool http_head_index(const char *page, size_t len, uint64_t *goroutines);

#endif
