/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service: a child that sonded keeps running: a family's loader or sonde-maps. Its state, what it
 * reports, and what happens when it ends. The loop (loop.c) decides when to start and stop it.
 *
 *   off -> starting -> running -> (ended) -> waiting -> starting ...     or, after too many, failed
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
#include "supervisor/children/starved.h"

enum service_state {
	SERVICE_OFF,
	SERVICE_WAITING,
	SERVICE_STARTING,
	SERVICE_RUNNING,
	SERVICE_STOPPING,
	SERVICE_FAILED
};
const char *service_state_name(enum service_state s);

/* Why it records nothing though it did. */
enum service_down { SERVICE_UP, SERVICE_DOWN_FAILED, SERVICE_DOWN_HUNG };

struct service {
	char name[24];                     /* "cpu", "maps" */
	char program[32];                  /* "sonde-cpu" */
	const struct probe_family *family; /* NULL: sonde-maps */
	bool wanted;
	enum service_state state;
	pid_t pid;                       /* 0: none */
	int64_t since_ns;                /* of the state; monotonic clock, as all below */
	int64_t ready_ns;                /* 0: not yet, this time */
	int64_t heard_ns;                /* its last sign of life */
	int64_t again_ns;                /* when it is started again */
	int64_t kill_ns;                 /* stopping: when patience ends */
	int64_t patience_ns;             /* stopping: how long it lasts */
	bool asked_again;                /* stopping: SIGTERM was sent twice */
	struct starved starved;          /* how long it has waited for a CPU */
	bool told_starved;               /* the log has it that this process gets no CPU, */
	bool told_blocked;               /* that it waits for a disk, */
	bool told_stuck;                 /* and that it does not end though it was killed */
	enum service_down down;          /* of a loader; the loop takes it back */
	uint64_t kills;                  /* memlimit_kills when it was started */
	bool resumed;                    /* it was stopped by a signal, and told to go on */
	unsigned int failures;           /* in a row */
	unsigned int starts;             /* all */
	int exit;                        /* of the last one: code, -1 signal */
	char why[256], fix[160];         /* of its last failure; "": none */
	struct err last;                 /* its last failure since it last ran; code 0: none */
	bool in_store;                   /* this process has written to the store */
	struct err unstored;             /* it ended without storing all that it held; code 0: no */
	char said[256], said_fix[160];   /* the last line of its stderr, "": none; for a service
					    without a progress pipe */
	int progress_fd, stderr_fd;      /* ours, -1: none */
	struct strbuf line, stderr_line; /* incomplete lines */
	double samples, lost;            /* of the running process, as last reported */
	double unsure;       /* its last word: events that the store took before its disk failed */
	uint64_t helpers_ns; /* the helpers' part of told_ns: they have their own limit */
	uint64_t told_ns, bpf_ns, map_bytes; /* the same: its CPU time if it reports that; that of
						its BPF programs; the size of its maps */
	uint64_t ended_ns, ended_helpers_ns; /* CPU time of its earlier processes, BPF programs
						included; the helpers' part of it */
	uint64_t looked_ns;                  /* all of it at the last look (cost.c) */
	double cores;                        /* between the last two looks, without helpers */
	int64_t told_step_ns;                /* when the last step was sent to it */
	unsigned int step; /* how far it is reduced (schema/families/families.h); 0: not at all */
	char store_error[64]; /* why it cannot write to the store at the moment; "": it can */
	double samples_before, lost_before; /* of its earlier processes */
	uint64_t memory_bytes; /* memory limit of the next process (child.h); 0: none */
	/* Hears of each thing that it reports as having happened; NULL: no one listens. */
	void (*happened)(void *ctx, const char *cause, const char *why);
	void *happened_ctx;
	uint32_t freq;  /* the rate it was started with */
	char wants[16]; /* the processes that it wants from sonded (targets.h); "": it finds them
			   itself */
};

void service_init(struct service *s, const char *name, const struct probe_family *f);
void service_release(struct service *s);
/* Starts it with argv (argv[0] is replaced by the program's path) and `fds`, in addition to those
 * that every service gets: stderr and, for a loader, 3 for its progress. After a failure, which is
 * logged, it is waiting or failed. */
void service_start(struct service *s, char **argv, const struct child_fd *fds, size_t n_fds,
		   uint64_t caps);
/* Reads its progress lines, and its stderr into the log. */
void service_read_progress(struct service *s);
void service_read_stderr(struct service *s);
void service_ready(struct service *s);
/* a loader's time to flush; it gives itself less (capture.c), this is for one that gets no CPU */
#define SERVICE_STOP_NS (5 * NSEC_PER_SEC)
/* and at most so long if it gets none at all: a stop has to end */
#define SERVICE_STARVED_NS (30 * NSEC_PER_SEC)
/* as long may one wait for a disk that does not answer: to kill it would not end that wait either
 */
#define SERVICE_BLOCKED_NS (120 * NSEC_PER_SEC)
/* Asks it to end, asks again after `patience_ns`, and kills it after that time again. A waiting
 * service becomes off; a failed one stays failed. */
void service_stop(struct service *s, int64_t patience_ns);
/* It has ended, with a status and CPU time from wait4(2). */
void service_ended(struct service *s, int status, uint64_t used_ns);
/* CPU time of all processes that ran as this service, BPF programs included. */
uint64_t service_cpu_ns(const struct service *s);
/* Kills it if it hangs or is slow to end. Time in which it waited for a CPU does not count, nor, up
 * to SERVICE_BLOCKED_NS, for a disk. One that was stopped by a signal goes on instead, once. In
 * each case its programs count meanwhile, so nothing is lost untold. */
void service_watch(struct service *s);
/* A waiting or failed service becomes off, so that the loop starts it again. */
void service_try_anew(struct service *s);
/* Does it not record, with nothing that says that it soon will: it was given up, or fails again and
 * again, or cannot write to the store? */
bool service_is_failing(const struct service *s);
/* Why it does not record: program, reason, fix and exit code. */
int service_failure(const struct service *s, struct err *e);
json_t *service_json(const struct service *s);

#endif
