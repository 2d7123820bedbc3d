/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service: one child that is kept going: a family's loader, or sonde-maps. Its state, its words,
 * and what becomes of it when it ends. What is done when is the loop's (loop.c).
 *
 *   off -> starting -> running -> (ended) -> waiting -> starting ...     or, given up, failed
 *                 \-> stopping -> off
 */
#ifndef SONDE_SUPERVISOR_SERVICE_H
#define SONDE_SUPERVISOR_SERVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/families/families.h"
#include "schema/base/strbuf.h"
#include "supervisor/children/child.h"

enum service_state {
	SERVICE_OFF,
	SERVICE_WAITING,
	SERVICE_STARTING,
	SERVICE_RUNNING,
	SERVICE_STOPPING,
	SERVICE_FAILED
};
const char *service_state_name(enum service_state s);

struct service {
	char name[24];                     /* "cpu", "maps" */
	char program[32];                  /* "sonde-cpu" */
	const struct probe_family *family; /* NULL: sonde-maps */
	bool wanted;
	enum service_state state;
	pid_t pid;                     /* 0: none */
	int64_t since_ns;              /* of the state; monotonic clock, as all below */
	int64_t ready_ns;              /* 0: not yet, this time */
	int64_t heard_ns;              /* its last sign of life */
	int64_t again_ns;              /* when it is started again */
	int64_t kill_ns;               /* stopping: when patience ends */
	unsigned int failures;         /* in a row */
	unsigned int starts;           /* all */
	int exit;                      /* of the last one: code, -1 signal */
	char why[256], fix[160];       /* of its last failure, "" */
	char said[256], said_fix[160]; /* its last words, "": none; for one that has no progress to
					  tell it by */
	int progress_fd, stderr_fd;    /* ours, -1: none */
	struct strbuf line, stderr_line; /* begun */
	double samples, lost;            /* of the one that runs, as it told last */
	uint64_t helpers_ns; /* of told_ns, what its helpers took: they have a limit of their own */
	uint64_t told_ns, bpf_ns, map_bytes; /* the same: its CPU time where it tells that, that of
						its BPF programs; what its maps take */
	uint64_t ended_ns, ended_helpers_ns; /* CPU time of those before it, programs included; of
						it their helpers' */
	uint64_t looked_ns;                  /* all of it, as of the last look (cost.c) */
	double cores;                        /* between the last two looks, without helpers */
	int64_t told_step_ns;                /* when it was told how much to do */
	unsigned int step;    /* how much less than all it does (schema/families/families.h) */
	char store_error[64]; /* why it cannot write the store just now, "": it can */
	double samples_before, lost_before; /* of those before it */
	uint64_t memory_bytes; /* most that the next one may have of its own (child.h), 0: no limit
				*/
	uint32_t freq;         /* what it was started with */
	char wants[16]; /* the processes that it wants to be given (targets.h), "": it looks for
			   itself */
};

void service_init(struct service *s, const char *name, const struct probe_family *f);
void service_release(struct service *s);
/* Start it: argv (argv[0] is replaced by the program's path), fds beside those that every service
 * gets: stderr, and, for a loader, 3: its progress. A failure leaves it waiting or failed, and is
 * said. */
void service_start(struct service *s, char **argv, const struct child_fd *fds, size_t n_fds,
		   uint64_t caps);
/* Take in what it says. */
void service_read_progress(struct service *s);
void service_read_stderr(struct service *s);
void service_ready(struct service *s);
/* a loader's time to flush: it gives itself less (capture.c), this is for one that gets no CPU */
#define SERVICE_STOP_NS (5 * NSEC_PER_SEC)
/* Ask it to end; within `patience_ns`, or it is killed. One that waits is off; one that was given
 * up stays so. */
void service_stop(struct service *s, int64_t patience_ns);
/* It has ended, with a status and CPU time as of wait4(2). */
void service_ended(struct service *s, int status, uint64_t used_ns);
/* CPU time of all that ran as this service, their BPF programs included. */
uint64_t service_cpu_ns(const struct service *s);
/* Hung, or slow to end: kill it. */
void service_watch(struct service *s);
/* One that waits or was given up is neither any more: what may start it again does. */
void service_try_anew(struct service *s);
/* Why it does not run: its program, reason and fix, and the exit code. */
int service_failure(const struct service *s, struct err *e);
json_t *service_json(const struct service *s);

#endif
