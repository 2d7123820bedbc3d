/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the connection to sonde-nvml, which may hang or die: sonde-gpu never waits for it. It is a
 * child without any right, or systemd's instance if the socket WIRE_SOCKET exists
 * (sonde-nvml.socket). If it does not answer, it is killed, or the connection is closed, and
 * another one is started WIRE_REST_NS later; once WIRE_STUCK_MAX children cannot be killed, no more
 * are started.
 */
#ifndef SONDE_GPU_WIRE_H
#define SONDE_GPU_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/gpu/gpuparse.h"
#include "schema/base/err.h"
#include "schema/base/strbuf.h"

#define WIRE_SOCKET    "/run/sonde-nvml.sock"
#define WIRE_START_NS  (30000000000ll) /* drivers take seconds for some devices */
#define WIRE_ANSWER_NS (5000000000ll)
#define WIRE_REST_NS   (60000000000ll)
#define WIRE_STUCK_MAX 4
#define WIRE_BYTES_MAX (1u << 20)

enum wire_state { WIRE_OFF, WIRE_STARTING, WIRE_IDLE, WIRE_ASKED };

struct wire {
	enum wire_state state;
	pid_t child; /* 0: none, or it is not ours */
	pid_t stuck[WIRE_STUCK_MAX];
	int to, from; /* -1: none */
	int64_t since_ns, rest_ns;
	uint32_t starts;
	uint64_t ended_cpu_ns; /* of children that ended */
	struct strbuf text;
	struct gpuparse_hello hello;
};

#define WIRE_INIT                    \
	{                            \
		.to = -1, .from = -1 \
	}

/* Starts one if none runs and it is time. 0, or what prevents it. */
int wire_start(struct wire *t, int64_t now_ns, struct err *e);
/* Waits for it to be ready, `patience_ns` at most. 0; -ETIMEDOUT: it is not yet; -EIO: it says why
 * it cannot. */
int wire_await(struct wire *t, int64_t patience_ns, struct err *e);
/* Reads what has come, without waiting. -EIO: it reported an error, has ended, or did not start in
 * time: it is dropped. */
int wire_read(struct wire *t, int64_t now_ns, struct err *e);
/* True: it is asked now. */
bool wire_ask(struct wire *t, int64_t now_ns);
/* The next device of the answer, and whether that ended with it. GPUPARSE_MORE: no more has come.
 */
enum gpuparse_what wire_next(struct wire *t, struct gpuparse_device *out);
/* Drops a child that has not answered in full within WIRE_ANSWER_NS: -EIO. After wire_next. */
int wire_overdue(struct wire *t, int64_t now_ns, struct err *e);
void wire_end(struct wire *t);
/* CPU time of its child, those of before too. */
uint64_t wire_cpu_ns(const struct wire *t);

#endif
