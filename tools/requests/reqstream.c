/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/requests/reqstream.h"

#include <sqlite3.h>
#include <string.h>

#include "schema/base/array.h"

#define LONG_US 10000000 /* an answer that takes longer than this */
#define BEGINS  10       /* and began within this part of its time */

static const struct {
	const char *protocol, *operation;
	const char *service; /* NULL: any */
} STREAMS[] = {
	/* the APIs of Docker and Podman: on their socket, or with their version in the path */
	{"http", "GET */events", "*.sock*"},
	{"http", "GET */v1.*/events", NULL},
	{"http", "GET */containers/*/stats", NULL},
	{"http", "GET */containers/*/logs", NULL},
	{"http", "GET */services/*/logs", NULL},
	{"http", "* */containers/*/attach", NULL},
	{"http", "* */containers/*/attach/ws", NULL},
	{"http", "POST */containers/*/wait", NULL},
	{"http", "POST */exec/*/start", NULL},
	{"http*", "* */api/v1/watch/*", NULL},
	{"http*", "* */apis/*/watch/*", NULL},
	/* gRPC */
	{"http2", "*.*/Watch*", NULL},
	{"http2", "*.*/Subscribe*", NULL},
	{"http2", "*.*/Stream*", NULL},
	{"http2", "*.*/LeaseKeepAlive", NULL},
	{"http2", "*.Events/*", NULL},
	/* containerd's events and waits for tasks, on connections whose headers began before the
	 * recording */
	{"http2", "*[?][?]", "*containerd.sock*"},
	{"redis", "BL[MP]*", NULL},
	{"redis", "BRPOP*", NULL},
	{"redis", "BZ*POP*", NULL},
	{"redis", "XREAD*", NULL},
	{"redis", "WAIT*", NULL},
	{"redis", "*SUBSCRIBE*", NULL},
	{"redis", "MONITOR*", NULL},
	{"redis", "*SYNC*", NULL},
	{"postgres", "LISTEN*", NULL},
	{"postgres", "START_REPLICATION*", NULL},
	{"mysql", "*BINLOG*DUMP*", NULL},
	{"mongodb", "getMore*", NULL},
	{"mongodb", "hello*", NULL},
	{"kafka", "Fetch*", NULL},
	{"kafka", "JoinGroup*", NULL},
	{"kafka", "SyncGroup*", NULL},
};

/* fnmatch would turn both into wide characters each time. */
static bool fits(const char *glob, const char *text)
{
	return !sqlite3_strglob(glob, text);
}

bool reqstream_asked(const char *protocol, const char *service, const char *operation)
{
	if (!strcmp(protocol, "websocket"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(STREAMS); i++)
		if (*STREAMS[i].protocol == *protocol && fits(STREAMS[i].protocol, protocol) &&
		    fits(STREAMS[i].operation, operation) &&
		    (!STREAMS[i].service || fits(STREAMS[i].service, service)))
			return true;
	return false;
}

bool reqstream_answered(const struct reqsingle *r)
{
	const bool http = !strncmp(r->protocol, "http", 4);

	return !strcmp(r->result, "opened") || (http && !strcmp(r->status, "101")) ||
	       (http && r->total_us >= LONG_US && r->first_us >= 0 &&
		r->first_us <= r->total_us / BEGINS);
}

bool reqstream_is(const struct reqsingle *r)
{
	return reqstream_answered(r) || reqstream_asked(r->protocol, r->service, r->operation);
}

bool reqstream_is_engine(const char *service)
{
	static const char *const sockets[] = {"docker.sock", "containerd.sock", "podman.sock"};

	for (size_t i = 0; i < sizeof(sockets) / sizeof(*sockets); i++)
		if (strstr(service, sockets[i]))
			return true;
	return false;
}
