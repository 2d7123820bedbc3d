/* SPDX-License-Identifier: Apache-2.0 */
/* names: see the headers. A hash table of open addresses over copied texts; 0 is "?", 1 is
 * "<other>". */
#include "loaders/lib/protocols/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/unpack.h"
#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define SLOTS 65536 /* a power of two, more than twice PROTO_OPERATIONS */
#define OTHER 1

struct protocols {
	struct proto_opts opts;
	struct routes *routes;
	struct idtable shared;
	struct unpack_budget unpacks;
	struct protocols *trial; /* NULL: not needed yet */
	char **names;
	uint64_t *hashes;
	uint32_t n, cap_names, cap_hashes;
	uint32_t slots[SLOTS]; /* id + 1, 0: empty */
	char now[PROTO_NAME_MAX];
};

static uint32_t add(struct protocols *s, const char *text, size_t n, uint64_t hash, uint32_t at)
{
	uint32_t id = s->n;

	mem_grow(s->names, s->n, s->cap_names);
	if (s->cap_hashes != s->cap_names) {
		s->cap_hashes = s->cap_names;
		s->hashes = mem_realloc(s->hashes, s->cap_hashes * sizeof(*s->hashes));
	}
	s->names[id] = mem_strndup(text, n);
	s->hashes[id] = hash;
	s->slots[at] = id + 1;
	s->n++;
	return id;
}

static uint32_t intern(struct protocols *s, const char *text, size_t n)
{
	uint64_t hash = hash_bytes(HASH_SEED, text, n);
	uint32_t at = (uint32_t)hash & (SLOTS - 1);

	for (; s->slots[at]; at = (at + 1) & (SLOTS - 1)) {
		uint32_t id = s->slots[at] - 1;

		if (s->hashes[id] == hash && !strncmp(s->names[id], text, n) && !s->names[id][n])
			return id;
	}
	return s->n < PROTO_OPERATIONS ? add(s, text, n, hash, at) : OTHER;
}

struct protocols *protocols_new(const struct proto_opts *opts)
{
	struct protocols *s = mem_alloc(sizeof(*s));

	s->opts = *opts;
	s->routes = routes_new();
	intern(s, "?", 1);
	intern(s, "<other>", 7);
	return s;
}

void protocols_free(struct protocols *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		free(s->names[i]);
	free(s->names);
	free(s->hashes);
	routes_free(s->routes);
	protocols_free(s->trial);
	idtable_release(&s->shared);
	free(s);
}

enum proto_payload protocols_payload(const struct protocols *s)
{
	return s->opts.payload;
}

void protocols_emit(const struct protocols *s, const struct proto_request *r)
{
	if (s->opts.emit)
		s->opts.emit(s->opts.ctx, r);
}

void protocols_named(const struct protocols *s, const struct proto_named *x)
{
	if (s->opts.named && s->opts.payload != PROTO_NONE)
		s->opts.named(s->opts.ctx, x);
}

const char *protocols_name(const struct protocols *s, uint32_t id)
{
	return id < s->n ? s->names[id] : "?";
}

static uint64_t service_of(const void *host, size_t n_host, uint16_t port)
{
	return n_host ? hash_bytes(HASH_SEED, host, n_host) : hash_u64(HASH_SEED, port);
}

size_t proto_route(struct proto_conn *c, const void *host, size_t n_host, const uint8_t *path,
		   size_t n, char mark, char *out)
{
	/* where the sides turned out to be the other way round, the port is a client's */
	return routes_name(c->of->routes, service_of(host, n_host, c->turned ? 0 : c->port), path,
			   n, mark, out);
}

struct idtable *protocols_shared(struct protocols *s)
{
	return &s->shared;
}

struct protocols *protocols_trial(struct protocols *s)
{
	static const struct proto_opts silent = {.payload = PROTO_NONE};

	if (!s->trial)
		s->trial = protocols_new(&silent);
	return s->trial;
}

struct unpack_budget *proto_unpacks(struct proto_conn *c)
{
	return &c->of->unpacks;
}

uint32_t proto_name(struct proto_conn *c, const char *text, size_t n)
{
	char cut[PROTO_NAME_MAX];

	n = strnlen(text, n);
	if (n < PROTO_NAME_MAX)
		return n ? intern(c->of, text, n) : 0;
	n = PROTO_NAME_MAX - 4;
	while (n > 1 && ((uint8_t)text[n] & 0xc0) == 0x80) /* not within a character */
		n--;
	memcpy(cut, text, n);
	memcpy(cut + n, "...", 3);
	return intern(c->of, cut, n + 3);
}

uint32_t proto_namef(struct proto_conn *c, const char *fmt, ...)
{
	char text[4 * PROTO_NAME_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return proto_name(c, text,
			  n < 0                    ? 0 :
			  (size_t)n < sizeof(text) ? (size_t)n :
						     sizeof(text) - 1);
}

const char *proto_name_text(const struct proto_conn *c, uint32_t name)
{
	return protocols_name(c->of, name);
}

/* How a protocol's operations hold names that are folded: METHOD HOST/PATH, or COMMAND KEY. */
static char parts_mark(const char *protocol)
{
	static const struct {
		const char *protocol;
		char mark;
	} marks[] = {{"http", '/'},      {"http2", '/'}, {"fastcgi", '/'},  {"redis", ':'},
		     {"memcached", ':'}, {"nats", '.'},  {"zookeeper", '/'}};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (!strcmp(marks[i].protocol, protocol))
			return marks[i].mark;
	return '\0';
}

uint16_t proto_service_port(const char *service)
{
	const char *colon = strrchr(service, ':');
	unsigned int port = 0;

	return colon && sscanf(colon, ":%5u", &port) == 1 && port <= UINT16_MAX ? (uint16_t)port :
										  0;
}

const char *protocols_operation_now(struct protocols *s, const char *operation,
				    const char *protocol, uint16_t port)
{
	const char *host;
	char mark = parts_mark(protocol);
	const char *path = !mark || s->opts.payload == PROTO_FULL ?
				   NULL :
				   strchr(operation, mark == '/' ? '/' : ' ');

	if (!path || !strncmp(operation, "GRPC ", 5)) /* a method's name is its own */
		return operation;
	path += mark != '/';
	host = mark == '/' ? memchr(operation, ' ', (size_t)(path - operation)) : NULL;
	host = host ? host + 1 : path;
	return routes_again(s->routes, service_of(host, (size_t)(path - host), port), operation,
			    (size_t)(path - operation), path, mark, s->now);
}
