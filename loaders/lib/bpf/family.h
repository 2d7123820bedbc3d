/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family: the one main loop of every loader. A family brings a vtable; options, checks, sonde-maps,
 * ring reading, holding samples until the mappings are known, naming, the store, progress,
 * self-cost, loss and the end are here. This file knows no family and no skeleton.
 */
#ifndef SONDE_BPF_FAMILY_H
#define SONDE_BPF_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/cli/options.h"
#include "schema/base/err.h"

struct bpf_object;
struct check;
struct hostmaps;
struct hostmaps_process;
struct kallsyms;
struct mp_used;
struct naming;
struct naming_result;
struct stack_event;
struct store_writer;

enum family_hierarchy {
	FAMILY_CGROUP_V2 = 0,
	FAMILY_CGROUP_V1_MEMORY = 1,
	FAMILY_CGROUP_V1_PIDS = 2
};

struct targetfeed;

struct family_cgroup {
	uint64_t id; /* unique within its hierarchy only */
	enum family_hierarchy hierarchy;
};

struct family_target { /* what --pid, --cgroup, --container, --comm, -- command said, resolved */
	const uint32_t *pids;
	size_t n_pids; /* processes (tgid) */
	const struct family_cgroup *cgroups;
	size_t n_cgroups;
	const char *const *comms;
	size_t n_comms;
	bool follow_children;          /* of pids: `-- command` */
	const struct targetfeed *feed; /* those that sonded gives, NULL: nobody does */
};

/* buckets so long are of what records always: nobody looks at this moment, and cheaper ways will do
 */
#define FAMILY_ALWAYS_S 10

struct family_config {
	const struct family_target *target;
	uint32_t freq;         /* 0 where the family has none */
	uint32_t cpus;         /* online now */
	uint32_t bucket_s;     /* see FAMILY_ALWAYS_S */
	uint64_t ring_bytes;   /* a power of two */
	const int *tables;     /* the maps to unwind with, for tables_reuse; NULL: there are none */
	const char *store_dir; /* for kerneltypes_path; NULL: nothing is stored */
};

#define FAMILY_TALLY_SLOTS 32
struct family_tally {        /* since attach; at rest seen = lost + what came through the ring */
	uint64_t seen;       /* events in the capture's scope */
	uint64_t lost;       /* of those, lost because the ring was full */
	uint64_t throttled;  /* events that the kernel held back, as far as it can be told; not in
				`seen` */
	uint64_t unfollowed; /* child processes that are missing because their set was full */
	uint64_t run_ns;     /* spent in the program */
	uint64_t helper_cpu_ns; /* of a process that works for the family: CPU time so far */
	uint32_t helper;        /* its number; 0: there is none */
	uint64_t slot[FAMILY_TALLY_SLOTS]; /* runs of [2^i, 2^(i+1)) ns */
};

/*
 * What a family has that reads processes by itself instead of being told by a program: it names
 * what it read (naming.h) and adds it to the store (writer.h: store_series, store_amount) on its
 * own. All borrowed; the same from begin to end.
 */
struct family_host {
	const struct family_target *target;
	const char *store_dir;
	struct hostmaps *maps;
	struct naming *naming;
	struct store_writer *store;
	uint32_t run; /* of the store */
	uint32_t bucket_s;
	int64_t offset_ns; /* utc = boot clock + offset; may change from one call to the next */
	/* the family's figures, which the loop passes on: events (as store_amount counts them) that
	 * the store took, and those that it did not; processes that it read */
	uint64_t added, refused, processes;
	/* when `poll` is to be called at the latest (boot clock), which sets it each time. 0:
	 * whenever it suits the loop */
	int64_t next_ns;
};

/* When the bucket ends that holds this moment. */
static inline int64_t family_bucket_end(const struct family_host *h, int64_t now_ns)
{
	int64_t width = (int64_t)h->bucket_s * 1000000000, utc = now_ns + h->offset_ns;

	return (utc / width + 1) * width - h->offset_ns;
}

struct family {
	const char *name;    /* "cpu": also the store's family and the program's name sonde-NAME */
	const char *summary; /* one line for --help */
	bool has_freq;       /* offers --freq */
	bool no_mappings; /* has no stacks, and asks for no file of a process: its rows of processes
			     do not say what they are programs of */
	const char *wants;         /* the processes that sonded may give it: "go", "libssl", "all"
				      (targetfeed.h); NULL: it watches the host */
	unsigned int keeps;        /* CONFINE_*: what it does while it records, which others may not
				      (loaders/lib/sandbox/confine.h) */
	struct option_set options; /* those of this family alone; {0}: none */
	/* What it works with where nothing can be loaded: 0, or the reason why not even that. NULL:
	 * it is nothing without its programs. A family that has it may find its state without an
	 * object (open leaves *obj NULL), and has no ring. */
	int (*rights)(const char *prog, struct err *e);

	/* Open the skeleton, set .rodata and map sizes, load it. *obj is for the checks and the
	 * cost ledger. */
	int (*open)(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e);
	int (*attach)(void *state, struct err *e); /* NULL: there is nothing to attach */
	/* Twice a second or more often (family_host.next_ns), from attach to detach, when mappings
	 * are up to date: a family that reads by itself does it here, in small pieces: it holds up
	 * rings and signals meanwhile. May be NULL. */
	void (*poll)(void *state, struct family_host *h, int64_t now_ns);
	/* Descriptor that becomes readable (seen by an edge-triggered epoll) when `poll` is to be
	 * called before its time: a ring of the family's own that fills fast. -1: none. May be
	 * NULL. */
	int (*wake_fd)(void *state);
	/* A process ended (hostmaps_process.end says how; an exec ends a program too), as
	 * sonde-maps told it: called between polls, of all processes, whatever the capture is
	 * narrowed to. Nothing but notes of it are to be taken here. May be NULL. */
	void (*process_ended)(void *state, struct family_host *h, const struct hostmaps_process *p);
	/* What a process used that has ended, as sonde-maps told it some time after
	 * `process_ended`; p NULL: it is forgotten. Notes alone, as there. May be NULL. */
	void (*process_usage)(void *state, struct family_host *h, const struct mp_used *u,
			      struct hostmaps_process *p);
	/* The capture ends: what is to be read once more is read now, within `patience_ns`; a
	 * family with programs detaches them first. May be NULL. */
	void (*last_read)(void *state, struct family_host *h, int64_t patience_ns);
	/* CPUs that came or went since: called about once a second. */
	void (*tick)(void *state);
	/* The kernel's symbols, once there are any: called once, borrowed for that call. May be
	 * NULL. */
	void (*symbols)(void *state, const struct kallsyms *k);
	/* Descriptor of the ring buffer map whose records are a stack_event and its frames. NULL:
	 * the family has none. */
	int (*ring_fd)(void *state);
	/* Descriptor of the ring buffer map whose records are struct stack_late, -1: it has none.
	 * May be NULL. */
	int (*late_fd)(void *state);
	/* Translate one record: how much of which kind it adds. 0, or -EBADMSG for a record that is
	 * not ours. With ring_fd. */
	int (*record_amount)(void *state, const void *record, size_t size, uint64_t *n);
	/* Records are no CPU samples: the family names each and stores what it adds, in its own
	 * time (h->added, h->refused), and `record_amount` says how much that is. *named: what the
	 * record's stack was named as; untouched: it has none. A record NULL: no more will come.
	 * May be NULL. */
	void (*store_record)(void *state, struct family_host *h, const struct stack_event *record,
			     size_t size, struct naming_result *named);
	/* What one sample stands for; known after attach. NULL: 0, values are themselves. */
	uint64_t (*period_ns)(void *state);
	/* What drives it, for people: "cycles", "cpu-clock". NULL: its name says it. */
	const char *(*clock)(void *state);
	void (*tally)(void *state,
		      struct family_tally *t); /* NULL: it loses nothing, and counts nothing */
	/* Do less by so many steps (schema/families/families.h): 0 is all it does. sonded says so
	 * while the capture runs. May be NULL. */
	void (*reduce)(void *state, uint32_t step);
	void (*detach)(void *state); /* after it no more events come; NULL: nothing came */
	void (*close)(void *state);
	/* Add what this family needs of the host to `--check`. May be NULL. */
	void (*check)(struct check *c, uint32_t freq);
};

/* The whole program: parses argv, runs, returns the exit code. */
int family_main(const struct family *f, int argc, char **argv);

#endif
