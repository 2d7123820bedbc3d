/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: the socket for requests to sonded: STORE/control.sock, a stream, mode 0660 with the
 * store's group. A client sends one JSON object and a newline, and gets one back; then the
 * connection closes.
 *
 *   {"do": "status"}                    for all users who may read the store
 *   {"do": "logs", "n": 100}
 *   {"do": "up", "families": ["cpu"]}   these: for root and the user that sonded runs as
 *   {"do": "down", "families": [...]}
 *   {"do": "stop"}, {"do": "reload"}, {"do": "prune"}
 *   {"do": "rotate"}                    all writers close the current segment; the answer has its
 *                                       name in "segment"
 *
 *   {"do": "keep", "last_ns": N, "why": TEXT}  keep the flight ring's last N ns; 0: ten minutes
 *                                       and the next half. With "cause": something happened, and
 *                                       a window is kept once an hour and cause
 *
 * The answer has "ok": true, or "error" and perhaps "fix", with the exit code in "exit".
 */
#ifndef SONDE_SUPERVISOR_CONTROL_H
#define SONDE_SUPERVISOR_CONTROL_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

#define CONTROL_CLIENTS     8 /* a further one replaces the client that has been silent longest */
#define CONTROL_REQUEST_MAX 4096

struct control {
	int listen_fd; /* -1: none */
	char path[108];
	struct control_client {
		int fd;        /* -1: free */
		uint64_t came; /* its number among all clients */
		bool trusted;  /* root, or our own user */
		char request[CONTROL_REQUEST_MAX];
		size_t n;
	} client[CONTROL_CLIENTS];
	/* Answers one request; `trusted`: it may change things. Never NULL. */
	json_t *(*answer)(void *ctx, const json_t *request, bool trusted);
	void *ctx;
	uint64_t came; /* how many came so far */
};

int control_open(struct control *c, const char *store, struct err *e);
void control_close(struct control *c);
/* For poll: at most 1 + CONTROL_CLIENTS; how many. Then control_serve, with what poll said of them.
 */
size_t control_fds(const struct control *c, struct pollfd *out);
void control_serve(struct control *c, const struct pollfd *polled);

#endif
