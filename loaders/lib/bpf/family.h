/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family: the one main loop of every loader. A family brings a vtable; options, checks, sonde-maps, ring reading,
 * holding samples until the mappings are known, naming, the store, progress, self-cost, loss and the end are here.
 * This file knows no family and no skeleton.
 */
#ifndef SONDE_BPF_FAMILY_H
#define SONDE_BPF_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct bpf_object;
struct family_run; /* one capture: opaque to the family, given back to the calls below */

struct family_target {          /* what --pid, --cgroup, --container, --comm, -- command said, resolved */
	const uint32_t *pids;      size_t n_pids;
	const uint64_t *cgroup_ids; size_t n_cgroup_ids;
	const char *const *comms;  size_t n_comms;
	bool follow_children;   /* of pids: `-- command` */
};

struct family_config {
	const struct family_target *target;
	uint32_t freq;          /* 0 where the family has none */
	uint64_t ring_bytes;
};

struct family {
	const char *name;       /* "cpu": also the store's family and the program's name sonde-NAME */
	const char *summary;    /* one line for --help */
	bool has_freq;          /* offers --freq */

	/* Open the skeleton, set .rodata and map sizes, load it. *obj is for the checks and the cost ledger. */
	int (*open)(const struct family_config *c, void **state, struct bpf_object **obj, struct err *e);
	int (*attach)(void *state, struct err *e);
	/* CPUs that came or went since: called once a second. */
	void (*tick)(void *state);
	/* Descriptor of the ring buffer map whose records are a stack_event and its frames. */
	int (*ring_fd)(void *state);
	/* Translate one record: how much of which kind it adds. 0, or -EBADMSG for a record that is not ours. */
	int (*value)(void *state, const void *record, size_t size, uint64_t *n);
	uint64_t (*period_ns)(void *state);
	/* Totals of the program's own tally since attach. */
	void (*tally)(void *state, uint64_t *seen, uint64_t *lost);
	void (*detach)(void *state);
	void (*close)(void *state);
};

/* The whole program: parses argv, runs, returns the exit code. */
int family_main(const struct family *f, int argc, char **argv);

#endif
