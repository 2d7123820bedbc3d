/* SPDX-License-Identifier: Apache-2.0 */
/* route: see the header. A tree of parts; a place that got too many siblings drops them and has one
 * child from then on. */
#include "loaders/lib/protocols/route.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/bytes.h"
#include "loaders/lib/protocols/conn.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define NODES_MAX 50000
#define PART_MAX  64
#define TOKEN     24 /* as long, with a digit: not a word */
#define HEX       8

struct route {
	uint64_t hash; /* of the part; the part itself is not needed */
	struct route *next, *children;
	uint32_t n_children;
	bool any; /* its children are {name} */
};

struct places {
	uint64_t service;
	struct route paths, keys;
};

#define SLOTS (2 * 1024) /* a power of two, twice ROUTE_SERVICES */

struct routes {
	struct places shared;     /* of all services for which there is no more room */
	struct places *of[SLOTS]; /* open addresses */
	uint32_t n_services, n_nodes;
};

_Static_assert(SLOTS >= 2 * ROUTE_SERVICES, "never full");

static void children_free(struct routes *r, struct route *at)
{
	struct route *next;

	for (struct route *c = at->children; c; c = next) {
		next = c->next;
		children_free(r, c);
		free(c);
		r->n_nodes--;
	}
	at->children = NULL;
	at->n_children = 0;
}

static void places_free(struct routes *r, struct places *p)
{
	children_free(r, &p->paths);
	children_free(r, &p->keys);
}

struct routes *routes_new(void)
{
	return mem_alloc(sizeof(struct routes));
}

void routes_free(struct routes *r)
{
	if (!r)
		return;
	places_free(r, &r->shared);
	for (size_t i = 0; i < SLOTS; i++) {
		if (r->of[i])
			places_free(r, r->of[i]);
		free(r->of[i]);
	}
	free(r);
}

static struct places *places_of(struct routes *r, uint64_t service)
{
	uint32_t at = (uint32_t)hash_u64(HASH_SEED, service) & (SLOTS - 1);

	for (; r->of[at]; at = (at + 1) & (SLOTS - 1))
		if (r->of[at]->service == service)
			return r->of[at];
	if (r->n_services >= ROUTE_SERVICES)
		return &r->shared;
	r->n_services++;
	r->of[at] = mem_alloc(sizeof(*r->of[at]));
	r->of[at]->service = service;
	return r->of[at];
}

static bool is_hex(uint8_t c)
{
	return byte_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool route_is_id(const uint8_t *p, size_t n)
{
	size_t digits = 0, hex = 0, dashes = 0, piece = 0,
	       longest = 0; /* between dots: containerd.services.tasks.v1 is words */

	for (size_t i = 0; i < n; i++) {
		digits += byte_is_digit(p[i]);
		hex += is_hex(p[i]);
		dashes += p[i] == '-' || p[i] == '_';
		piece = p[i] == '.' ? 0 : piece + 1;
		longest = piece > longest ? piece : longest;
		if (p[i] == '@' && i && i + 1 < n)
			return true;
	}
	if (!n || !digits)
		return n > PART_MAX;
	return digits + dashes == n || (hex + dashes == n && hex >= HEX) || longest >= TOKEN;
}

/* By the first letter, bits by the second: the 250 pairs of 676 that are most frequent in 29 000
 * identifiers, names of files and of packages. */
static const uint32_t frequent[26] = {
	0x13ebd4e, 0x0164911, 0x01ecd95, 0x0164f1b, 0x0efb87f, 0x0124931, 0x0066911,
	0x0084111, 0x2aef87f, 0x0040001, 0x0000111, 0x11c4919, 0x014d917, 0x03ce57d,
	0x07efc6f, 0x11ec991, 0x0100000, 0x13e7d5d, 0x11cdd9d, 0x11ec995, 0x00eb95f,
	0x0000111, 0x0004111, 0x0080000, 0x00ca000, 0x0000010};

static bool is_small(uint8_t c)
{
	return c >= 'a' && c <= 'z';
}

static size_t pair_score(uint8_t a, uint8_t b)
{
	size_t score = 0;

	if (byte_is_letter(a) && byte_is_letter(b)) {
		if (!(frequent[(a | 0x20) - 'a'] & 1u << ((b | 0x20) - 'a')))
			score += 2;
		return score + (is_small(a) && !is_small(b));
	}
	if (byte_is_digit(a) && byte_is_digit(b))
		return 1;
	return (byte_is_digit(a) && byte_is_letter(b)) || (byte_is_letter(a) && byte_is_digit(b)) ?
		       2 :
		       0;
}

bool route_is_token(const uint8_t *p, size_t n)
{
	size_t score = 0;

	for (size_t i = 1; i < n; i++)
		score += pair_score(p[i - 1], p[i]);
	return n >= ROUTE_TOKEN && score >= 9 && score * 5 >= 4 * (n - 1);
}

static struct route *child(struct routes *r, struct route *at, uint64_t hash)
{
	struct route **link = &at->children;

	for (; *link; link = &(*link)->next)
		if ((*link)->hash == hash)
			return *link;
	if (r->n_nodes >= NODES_MAX)
		return NULL;
	r->n_nodes++;
	at->n_children++;
	return *link = mem_alloc(sizeof(struct route)), (*link)->hash = hash, *link;
}

/* One part to `out`; the place that it leads to, NULL: the tree is full. */
static struct route *part(struct routes *r, struct route *at, const uint8_t *p, size_t n, char *out,
			  size_t *len)
{
	const char *text = (const char *)p;
	struct route *to;
	size_t id = n, m = n;

	while (id && p[id - 1] != '.') /* 123.jpg: {id}.jpg */
		id--;
	id = id > 1 && n - id < 6 ? id - 1 : n;
	if (!at)
		text = "{name}", m = 6;
	else if ((n == 4 && !memcmp(p, "{id}", 4)) || (n == 1 && *p == '*'))
		;
	else if (route_is_id(p, id))
		text = "{id}", m = 4;
	else if (route_is_token(p, id))
		text = "*", m = 1;
	else if (at->any)
		text = "{name}", m = 6;
	if (text != (const char *)p)
		id = m < 6 && at ? id : n; /* {name} has no suffix */
	else
		id = n;
	to = at ? child(r, at, hash_bytes(n - id, text, m)) : NULL;
	if (at && !at->any && at->n_children > ROUTE_SIBLINGS) {
		children_free(r, at);
		at->any = true;
		return part(r, at, p, n, out, len);
	}
	if (*len + m + (n - id) >= ROUTE_MAX)
		return NULL;
	memcpy(out + *len, text, m);
	*len += m;
	memcpy(out + *len, p + id, n - id);
	*len += n - id;
	return to;
}

static bool ends_part(uint8_t c, char mark)
{
	return c == (uint8_t)mark || (mark == '/' && (c == '?' || c == '#' || c == ';'));
}

size_t routes_name(struct routes *r, uint64_t service, const uint8_t *path, size_t n, char mark,
		   char out[ROUTE_MAX])
{
	struct places *p = places_of(r, service);
	struct route *at = mark == '/' ? &p->paths : &p->keys;
	size_t len = 0, i = 0;
	int parts = 0;

	while (i < n && len + 8 < ROUTE_MAX) {
		size_t from = i;

		if (mark == '/' && (path[i] == '?' || path[i] == '#'))
			break;
		if (path[i] == (uint8_t)mark) {
			out[len++] = mark;
			i++;
			continue;
		}
		if (++parts > ROUTE_PARTS) {
			memcpy(out + len, "...", 3);
			len += 3;
			break;
		}
		while (i < n && !ends_part(path[i], mark))
			i++;
		at = part(r, at, path + from, i - from, out, &len);
		while (i < n && path[i] == ';' && mark == '/')
			for (i++; i < n && !ends_part(path[i], mark);)
				i++;
	}
	out[len] = '\0';
	return len;
}

const char *routes_again(struct routes *r, uint64_t service, const char *name, size_t head_len,
			 const char *path, char mark, char *now)
{
	char out[ROUTE_MAX];
	size_t n = routes_name(r, service, (const uint8_t *)path, strlen(path), mark, out);

	if (head_len + n >= PROTO_NAME_MAX)
		return name;
	memcpy(now, name, head_len);
	memcpy(now + head_len, out, n + 1);
	return now;
}

bool route_is_address(const uint8_t *host, size_t n)
{
	static const char local[] = "localhost";
	size_t dots = 0, i;

	if (n && host[0] == '[')
		return true;
	if (n >= sizeof(local) - 1 && !memcmp(host, local, sizeof(local) - 1))
		return n == sizeof(local) - 1 || host[sizeof(local) - 1] == ':';
	for (i = 0; i < n && host[i] != ':'; i++) {
		dots += host[i] == '.';
		if (host[i] != '.' && (host[i] < '0' || host[i] > '9'))
			return false;
	}
	return dots == 3;
}

static size_t authority_size(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] != '/' && p[i] != '?' && p[i] != '#')
		i++;
	return i;
}

void route_host(const uint8_t **p, size_t *n)
{
	size_t from;

	*n = authority_size(*p, *n);
	for (from = *n; from && (*p)[from - 1] != '@';)
		from--;
	*p += from;
	*n -= from;
	for (from = *n; from && byte_is_digit((*p)[from - 1]);)
		from--;
	/* not a port: part of a password with an unescaped '/', '?' or '#' */
	if (from && memchr(*p, ':', *n) && (*p)[0] != '[' && (*p)[from - 1] != ':')
		*n = 0;
}

bool route_absolute(const uint8_t **p, size_t *n, const uint8_t **host, size_t *n_host)
{
	const uint8_t *at = *p;
	size_t i = 0, len;

	while (i < *n && (byte_is_letter(at[i]) || byte_is_digit(at[i]) || at[i] == '+' ||
			  at[i] == '-' || at[i] == '.'))
		i++;
	if (!i || *n - i < 3 || at[i] != ':' || at[i + 1] != '/' || at[i + 2] != '/')
		return false;
	at += i + 3;
	len = authority_size(at, *n - i - 3);
	*p = at + len;
	*n -= i + 3 + len;
	if (host) {
		*host = at;
		*n_host = len;
		route_host(host, n_host);
	}
	return true;
}
