/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route: paths and keys as few names. A part that has the shape of an id (digits, a UUID,
 * hexadecimal digits, a mail address, a long token) becomes {id} by itself; one that looks as a
 * generator of random text writes it (route_is_token), which may be a secret, becomes *; parameters
 * of a part (;jsessionid=...) are left away, as a query and a fragment are. A place with more than
 * ROUTE_SIBLINGS different parts becomes {name} once they have been seen. Up to ROUTE_SERVICES
 * services each have separate places; later ones share theirs.
 */
#ifndef SONDE_PROTOCOLS_ROUTE_H
#define SONDE_PROTOCOLS_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUTE_SIBLINGS 40
#define ROUTE_SERVICES 1000
#define ROUTE_PARTS    10  /* of a path; what follows is "..." */
#define ROUTE_MAX      200 /* bytes that come out, with the NUL */

struct routes;

struct routes *routes_new(void);
void routes_free(struct routes *r);
/* `service`: any number that identifies it. A path of n bytes (a query or fragment is left away),
 * or a key whose parts are parted by `mark`. Returns bytes in `out`. */
size_t routes_name(struct routes *r, uint64_t service, const uint8_t *path, size_t n, char mark,
		   char out[ROUTE_MAX]);
/* `name` (head_len bytes of head, then a path that routes_name made) as it would be made now. `now`
 * has PROTO_NAME_MAX bytes. */
const char *routes_again(struct routes *r, uint64_t service, const char *name, size_t head_len,
			 const char *path, char mark, char *now);
/* Is a host (with its port, or without) an address or localhost? Then it says no more than the
 * service does. */
bool route_is_address(const uint8_t *host, size_t n);
/* Has this part of a path the shape of an id? */
bool route_is_id(const uint8_t *p, size_t n);
/* Does it look random? Of ROUTE_TOKEN bytes or more, and each pair of neighbours counts: 2 for two
 * letters that are rarely neighbours in words and names of programs, and for a letter next to a
 * digit; 1 for two digits, and for a large letter after a small one. It is random from 9, if that
 * is 0.8 or more a pair. Of random letters
 * and digits 93 % of those with 9 bytes look so, 99.5 % of those with 12; of small letters alone 90
 * % of those with 12; of words, and of names in programs, 0.7 %. */
#define ROUTE_TOKEN 9
bool route_is_token(const uint8_t *p, size_t n);

/* Narrows an authority to host and port: drops the user name and password before '@', and anything
 * behind the authority. */
void route_host(const uint8_t **p, size_t *n);
/* If *p is SCHEME://AUTHORITY..., narrows *p to what follows the authority and sets *host, if not
 * NULL, to the host as route_host does. */
bool route_absolute(const uint8_t **p, size_t *n, const uint8_t **host, size_t *n_host);

#endif
