/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: who may ask. Pure, over what a request's head says; everything in it was chosen by a
 * stranger.
 *
 *   1. Host. A page elsewhere whose name its owner lets point to 127.0.0.1 (DNS rebinding) is of
 * the same origin as itself, but its Host is that name. Asked for may be: an address in numbers,
 * localhost, this host's own name (alone, or with .local), and the names that were given by --host.
 * The port is not looked at: a tunnel has another one.
 *   2. Origin and Sec-Fetch-Site. A page elsewhere may not ask, not even blindly. Origin, if there,
 * is http(s)://HOST; a request that the browser says comes from another site is refused, but for
 * following a link to the page itself.
 *   3. The token: a cookie, or Authorization: Bearer. Compared in a time that does not depend on
 * where they differ.
 */
#ifndef SONDE_SERVE_GUARD_H
#define SONDE_SERVE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#define GUARD_COOKIE "sonde"

struct guard {
	const char *const *hosts; /* more names, n_hosts */
	size_t n_hosts;
	const char *own;   /* this host's name, "" for none */
	const char *token; /* NULL: none is asked for */
};

/* What a request's head says; NULL: not there. */
struct guard_head {
	const char *host, *origin, *site, *mode, *cookie, *authorization;
};

enum guard_answer { GUARD_WELCOME, GUARD_NO_HOST, GUARD_HOST, GUARD_ORIGIN, GUARD_TOKEN };

/* page: the page itself is asked for, rather than data; check_host: not through a socket in the
 * file system */
enum guard_answer guard_ask(const struct guard *g, const struct guard_head *head, bool page,
			    bool check_host);
bool guard_token_is(const struct guard *g, const char *given, size_t len);
/* 16 to 200 of A-Z a-z 0-9 - . _ ~ + / = : what a cookie and a header can carry. */
bool guard_token_fits(const char *token);

#endif
