/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: decides who may send requests. Pure, from the head of a request, which is completely under
 * a stranger's control.
 *
 *   1. Host. A page elsewhere whose owner lets its name point to 127.0.0.1 (DNS rebinding) has the
 *      same origin as this server, but its Host is that name. Allowed are: a numeric address,
 *      localhost, this host's name (alone, or with .local), and the names given by --host. The
 *      port is ignored, because a tunnel has another one.
 *   2. Origin and Sec-Fetch-Site. Pages elsewhere may not send requests, not even without reading
 *      the answer. Origin, if present, must be http(s)://HOST; a request that the browser marks as
 *      coming from another site is refused, unless it follows a link to the page itself.
 *   3. The token: a cookie, or Authorization: Bearer. The time of the comparison does not depend
 *      on where the two differ.
 */
#ifndef SONDE_SERVE_GUARD_H
#define SONDE_SERVE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#define GUARD_COOKIE "sonde"

struct guard {
	const char *const *hosts; /* further names, n_hosts of them */
	size_t n_hosts;
	const char *own;   /* this host's name, "" for none */
	const char *token; /* NULL: no token is needed */
};

/* Fields of a request's head; NULL: absent. */
struct guard_head {
	const char *host, *origin, *site, *mode, *cookie, *authorization;
};

enum guard_answer { GUARD_WELCOME, GUARD_NO_HOST, GUARD_HOST, GUARD_ORIGIN, GUARD_TOKEN };

/* page: the page itself is requested, rather than data; check_host: false for a socket in the file
 * system */
enum guard_answer guard_ask(const struct guard *g, const struct guard_head *head, bool page,
			    bool check_host);
bool guard_token_is(const struct guard *g, const char *given, size_t len);
/* 16 to 200 of A-Z a-z 0-9 - . _ ~ + / = : what a cookie and a header can carry. */
bool guard_token_fits(const char *token);

#endif
