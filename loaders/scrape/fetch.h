/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch: sonde-scrape's side of a question (wire.h). `asker` is the way to sonde-pprof: a child
 * that is started before this program gives up the network (confine.h), or, where systemd has one
 * for us (WIRE_SOCKET), that.
 */
#ifndef SONDE_SCRAPE_FETCH_H
#define SONDE_SCRAPE_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/scrape/sockets.h"
#include "loaders/scrape/wire.h"
#include "schema/base/err.h"

struct asker {
	int fd;      /* -1: none */
	pid_t child; /* 0: it is not ours */
	uint64_t ended_cpu_ns;
};

int asker_start(struct asker *a, struct err *e);
void asker_end(struct asker *a);
/* CPU time of our child and of those that asked for it. */
uint64_t asker_cpu_ns(const struct asker *a);

struct fetch_stack {
	uint64_t values[WIRE_VALUES];
	uint32_t frames, n; /* in fetch.frames */
};

enum fetch_state { FETCH_ON, FETCH_DONE, FETCH_FAILED };

struct fetch {
	enum wire_ask ask;
	enum fetch_state state;
	int fd, connection;         /* -1: none */
	int64_t asked_ns, until_ns; /* boot clock */
	bool has_mapping;           /* `exe` is among the mappings that it reported */
	struct wire_mapping exe;
	uint64_t goroutines; /* of the page */
	struct fetch_stack *stacks;
	uint32_t n, cap;
	uint64_t *frames;
	uint32_t n_frames, cap_frames;
	struct wire_end end;
	struct wire_failed failed;
};

/* Sends a request. `pid`: in the network namespace of that process, if it is another one (0: ours).
 * `connection`: over that one instead, to a Unix socket; taken over (-1: none). 0, or what prevents
 * it. */
int fetch_begin(struct fetch *f, const struct asker *a, const struct wire_question *q, uint32_t pid,
		int connection, int64_t now_ns, struct err *e);
void fetch_release(struct fetch *f);
/* Takes in what has come, without waiting. */
void fetch_read(struct fetch *f, int64_t now_ns);
/* Pure: one message. false: it is invalid. */
bool fetch_take(struct fetch *f, const void *message, size_t len);
/* Says to the program that nothing more will be asked: a CPU profile ends at once, and comes. */
void fetch_hurry(struct fetch *f);

#endif
