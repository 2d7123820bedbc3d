/* SPDX-License-Identifier: Apache-2.0 */
/* sup: sonded's state, shared by loop.c, cost.c and control_answer.c. */
#ifndef SONDE_SUPERVISOR_SUP_H
#define SONDE_SUPERVISOR_SUP_H

#include "schema/base/file/place.h"
#include "supervisor/control/control.h"
#include "supervisor/limits/load_limit.h"
#include "supervisor/loop.h"
#include "supervisor/children/mapsowner.h"
#include "supervisor/limits/load_shed.h"
#include "supervisor/retention/keeper.h"
#include "supervisor/retention/retain.h"
#include "supervisor/retention/sealer.h"
#include "supervisor/children/service.h"
#include "supervisor/config/targets.h"

#define SUP_CHILDREN (4 + FAMILIES_MAX) /* sonde-maps, sonde-prune, sonde-seal twice, loaders */
#define COST_STEPS   32                 /* remembered for `sonde status` */

struct cost_step { /* a step taken because of a limit */
	int64_t utc_ns;
	enum shed_limit limit;
	char family[24];   /* "all": every one */
	uint32_t freq;     /* its rate from then on; 0: it is stopped or has no rate */
	unsigned int step; /* how far it is reduced from then on */
	const char *what;
};

struct sup {
	const struct loop_opts *o;
	struct conf conf;
	char families_read[CONF_TEXT_MAX]; /* as last read from the configuration; `sonde up` and
					      `down` change conf */
	char store[PATH_MAX], maps_socket[PATH_MAX + 16];
	int lock_fd, signal_fd;
	struct mapsowner maps;
	struct service
		loader[FAMILIES_MAX]; /* of all families wanted so far, in the order of the list */
	unsigned int n_loaders;
	struct targets *targets;
	struct control control;
	struct retain retain;
	struct sealer sealer;
	struct keeper keeper;
	struct load_limit cpu_held, memory_held;
	struct shed shed;
	struct cost_step steps[COST_STEPS]; /* oldest first */
	unsigned int n_steps;
	pid_t noted[SUP_CHILDREN]; /* in STORE/children (leftover.h) */
	struct err failure;        /* why it ends; code 0: no failure (loop_opts.must_record) */
	bool stopping, ready, prune_now;
	struct place place; /* of the store's folder */
	int64_t placed_ns;  /* when it was last looked at */
	bool misplaced;     /* it was renamed or removed: ends, to begin again in a new one */
	int64_t began_ns, watchdog_ns,
		watched_ns; /* monotonic clock; how often systemd is notified, and the last time */
	struct cost {       /* what all of sonde uses, at the last look (cost.c) */
		int64_t looked_ns; /* monotonic clock */
		uint64_t own_ns, store_ns,
			index_ns; /* CPU time since the start of sonded, of sonde-seal and
				     sonde-prune, and of sonde-index */
		double cores, store_cores, index_cores; /* between the last two looks; of it, these
							   two's, and sonde-index's */
		uint64_t switched; /* of threads on this host, as of the last look */
		double switches;   /* the same, a second */
		uint64_t bytes,
			burst_bytes; /* memory; of it, what these two and sonde-index have */
	} cost;
};

/* Applies a new configuration: starts, stops or restarts what changed, and nothing else. */
void sup_follow(struct sup *s, const struct conf *c);
int sup_reload(struct sup *s, struct err *e);
struct service *sup_service(struct sup *s, const char *family);
void sup_stop(struct sup *s);
/* cost.c: every ten seconds measures all of sonde; when it has exceeded its limits for a minute
 * (not counting what runs in bursts), it sheds load (load_shed.h). */
void cost_look(struct sup *s);
/* Into the store (shedlog.h): what this family does from now on. */
void cost_note(const struct sup *s, const struct service *l);
json_t *cost_json(const struct sup *s);
json_t *cost_steps_json(const struct sup *s);
/* How many steps are in force because of a limit. */
int cost_steps_held(const struct sup *s, enum shed_limit limit);
/* control_answer.c */
json_t *sup_answer(void *ctx, const json_t *request, bool trusted);

#endif
