/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk: the talk with sonde-nvml, which may hang or die: nobody waits for it. It is a child without any right, or, where systemd has one for
 * us (the socket TALK_SOCKET, sonde-nvml.socket), that. One that does not answer is killed, or hung up on, and another one started
 * TALK_REST_NS later; with TALK_STUCK_MAX children that cannot be killed nothing more is started.
 */
#ifndef SONDE_GPU_TALK_H
#define SONDE_GPU_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/gpu/gpuparse.h"
#include "schema/base/err.h"
#include "schema/base/strbuf.h"

#define TALK_SOCKET    "/run/sonde-nvml.sock"
#define TALK_START_NS  (30000000000ll) /* drivers take seconds for some devices */
#define TALK_ANSWER_NS (5000000000ll)
#define TALK_REST_NS   (60000000000ll)
#define TALK_STUCK_MAX 4
#define TALK_BYTES_MAX (1u << 20)

enum talk_state { TALK_OFF, TALK_STARTING, TALK_IDLE, TALK_ASKED };

struct talk {
	enum talk_state state;
	pid_t child;              /* 0: none, or it is not ours */
	pid_t stuck[TALK_STUCK_MAX];
	int to, from;             /* -1: none */
	int64_t since_ns, rest_ns;
	uint32_t starts;
	uint64_t ended_cpu_ns;    /* of children that ended */
	struct strbuf text;
	struct gpuparse_hello hello;
};

#define TALK_INIT {.to = -1, .from = -1}

/* Starts one, where there is none and it is time. 0, or what keeps it from that. */
int talk_start(struct talk *t, int64_t now_ns, struct err *e);
/* Waits for it to be ready, `patience_ns` at most. 0; -ETIMEDOUT: it is not yet; -EIO: it says why it cannot. */
int talk_await(struct talk *t, int64_t patience_ns, struct err *e);
/* Takes in what has come, without waiting. -EIO: it said why it cannot go on, is gone, or did not begin in time: it is let go. */
int talk_read(struct talk *t, int64_t now_ns, struct err *e);
/* True: it is asked now. */
bool talk_ask(struct talk *t, int64_t now_ns);
/* The next device of the answer, and whether that ended with it. GPUPARSE_MORE: no more has come. */
enum gpuparse_what talk_next(struct talk *t, struct gpuparse_device *out);
/* One that was asked and has not said all within TALK_ANSWER_NS is let go: -EIO. After talk_next. */
int talk_overdue(struct talk *t, int64_t now_ns, struct err *e);
void talk_end(struct talk *t);
/* CPU time of its child, those of before too. */
uint64_t talk_cpu_ns(const struct talk *t);

#endif
