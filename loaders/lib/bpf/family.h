/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family: the one main loop of every loader. A family provides a vtable; the loop has the options,
 * checks, sonde-maps, reading of rings, holding of samples until the mappings are known, naming,
 * the store, progress, its own cost, loss, and the end. This file knows no family and no skeleton.
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
struct progress;
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

struct family_target { /* --pid, --cgroup, --container, --comm and `-- command`, resolved */
	const uint32_t *pids;
	size_t n_pids; /* processes (tgid) */
	const struct family_cgroup *cgroups;
	size_t n_cgroups;
	const char *const *comms;
	size_t n_comms;
	bool follow_children;          /* the pids' children too: `-- command` */
	const struct targetfeed *feed; /* processes that sonded selects; NULL: no feed */
};

/* A capture with buckets this long records continuously: no person is watching, so cheaper ways
 * will do. */
#define FAMILY_ALWAYS_S 10

struct family_config {
	const struct family_target *target;
	uint32_t freq;         /* 0 where the family has none */
	uint32_t cpus;         /* online now */
	uint32_t bucket_s;     /* see FAMILY_ALWAYS_S */
	uint32_t fine_s;       /* as in family_host */
	uint64_t ring_bytes;   /* a power of two */
	uint64_t late_bytes;   /* of the ring `late`, the same */
	const int *tables;     /* the maps to unwind with, for tables_reuse; NULL: none */
	const char *store_dir; /* for kerneltypes_path; NULL: nothing is stored */
};

#define FAMILY_TALLY_SLOTS 32
struct family_tally {        /* since attach; at rest seen = lost + no_room + pairs + what
				came through the ring */
	uint64_t seen;       /* events in the capture's scope */
	uint64_t lost;       /* of those, lost because the ring was full */
	uint64_t no_room;    /* of those, lost because a table of the programs was full */
	uint64_t pairs;      /* of those, pairs of threads for which there was no room */
	uint64_t throttled;  /* events that the kernel held back (an estimate); not in `seen` */
	uint64_t unfollowed; /* child processes that are missing because the set of pids was full */
	uint64_t missed_apart;  /* runs that the kernel skipped of programs that count no events */
	uint64_t run_ns;        /* spent in the program */
	uint64_t helper_cpu_ns; /* CPU time so far of a process that works for the family */
	uint32_t helper;        /* its pid; 0: none */
	uint64_t slot[FAMILY_TALLY_SLOTS]; /* runs of [2^i, 2^(i+1)) ns */
};

/*
 * What a family gets that reads processes by itself, without a BPF program: it names what it reads
 * (naming.h) and adds it to the store (writer.h: store_series, store_amount). All borrowed; the
 * same from begin to end.
 */
struct family_host {
	const struct family_target *target;
	const char *store_dir;
	struct hostmaps *maps;
	struct naming *naming;
	struct store_writer *store;
	struct progress *progress; /* what was started reports to (run/progress.h); NULL: nothing */
	uint32_t run;              /* of the store */
	uint32_t bucket_s;
	uint32_t fine_s;   /* the step of the ring that it also writes; 0: no ring */
	int64_t offset_ns; /* utc = boot clock + offset; may change from one call to the next */
	int64_t set_ns, before_offset_ns; /* up to set_ns it was that */
	/* the family's counts, for the loop: events (as store_amount counts them) that the store
	 * accepted and rejected; processes that it read; rows left out, since their process was not
	 * known and the capture is of some processes (who.h) */
	uint64_t added, refused, processes, unknown;
	/* `poll` sets it at each call: when to call it again at the latest (boot clock). 0:
	 * whenever it suits the loop */
	int64_t next_ns;
};

/* Of an event that may have waited while the wall clock was set. */
static inline int64_t family_utc(const struct family_host *h, int64_t boot_ns)
{
	return boot_ns + (boot_ns < h->set_ns ? h->before_offset_ns : h->offset_ns);
}

/* The end of the bucket that contains this moment. */
static inline int64_t family_bucket_end(const struct family_host *h, int64_t now_ns)
{
	int64_t width = (int64_t)h->bucket_s * 1000000000, utc = now_ns + h->offset_ns;

	return (utc / width + 1) * width - h->offset_ns;
}

struct family {
	const char *name;    /* "cpu": also the store's family and the program's name sonde-NAME */
	const char *summary; /* one line for --help */
	bool has_freq;       /* offers --freq */
	bool rests;          /* it has a ring, and is called every two seconds only, as one without:
				what its stacks show is of processes that last */
	uint32_t fine_s;     /* its step in the ring of --flight; 0: it has nothing for it */
	bool no_mappings; /* it has no stacks and needs no file of a process, so its process rows do
			     not say what they are programs of */
	bool no_scripts;  /* its programs walk no stacks of interpreters, on no kernel */
	const char *wants;  /* the processes that sonded may select for it: "go", "libssl", "all"
			       (targetfeed.h); NULL: it watches the host */
	unsigned int keeps; /* CONFINE_*: rights that it needs while it records
			       (loaders/lib/sandbox/confine.h) */
	struct option_set options; /* of this family; {0}: none */
	/* What it can do where no program may be loaded: 0, or the reason why it cannot work at
	 * all. NULL: it needs its programs. A family that has this may work without an object (open
	 * leaves *obj NULL) and has no ring. */
	int (*rights)(const char *prog, struct err *e);

	/* What attaching will need besides the right to load programs, looked at before a store is
	 * made: 0, or the reason why it cannot work. May be NULL. */
	int (*needs)(struct err *e);

	/* Open the skeleton, set .rodata and map sizes, load it. *obj is for the checks and the
	 * cost ledger. */
	int (*open)(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e);
	int (*attach)(void *state, struct err *e); /* NULL: there is nothing to attach */
	/* Called once a second or more often (family_host.next_ns; of a family that rests or has no
	 * ring, with long buckets, every two seconds), from attach to detach, when
	 * mappings are up to date. A family that reads by itself does so here, in small pieces:
	 * rings and signals have to wait meanwhile. May be NULL. */
	void (*poll)(void *state, struct family_host *h, int64_t now_ns);
	/* Descriptor that becomes readable (seen by an edge-triggered epoll) when `poll` should be
	 * called early: the family has its own ring, and that fills fast. -1: none. May be NULL. */
	int (*wake_fd)(void *state);
	/* A process ended (hostmaps_process.end says how; an exec ends a program too). Called
	 * between polls, for all processes, whatever the capture's target. Only take notes here.
	 * May be NULL. */
	void (*process_ended)(void *state, struct family_host *h, const struct hostmaps_process *p);
	/* The usage of a process that has ended, some time after `process_ended`; p NULL: the
	 * process has been forgotten. Only take notes here. May be NULL. */
	void (*process_usage)(void *state, struct family_host *h, const struct mp_used *u,
			      struct hostmaps_process *p);
	/* The capture ends: read what is still to be read, within `patience_ns`; a family with
	 * programs detaches them first. May be NULL. */
	void (*last_read)(void *state, struct family_host *h, int64_t patience_ns);
	/* Called about once a second: follow CPUs that came or went. */
	void (*tick)(void *state);
	/* The kernel's symbols: called once, when they are known; borrowed for that call. May be
	 * NULL. */
	void (*symbols)(void *state, const struct kallsyms *k);
	/* Descriptor of the ring buffer map whose records are a stack_event and its frames. NULL:
	 * the family has none. */
	int (*ring_fd)(void *state);
	/* Descriptor of the ring buffer map whose records are struct stack_late, -1: it has none.
	 * May be NULL. */
	int (*late_fd)(void *state);
	/* Translate one record: how much it adds. 0, or -EBADMSG if the record is not ours. With
	 * ring_fd. */
	int (*record_amount)(void *state, const void *record, size_t size, uint64_t *n);
	/* The family's records are not CPU samples: it names each and stores its amounts when it
	 * likes (h->added, h->refused); `record_amount` says how much a record adds. *named: the
	 * name of the record's stack; untouched: it has no stack. A record NULL: there will be no
	 * more. May be NULL. */
	void (*store_record)(void *state, struct family_host *h, const struct stack_event *record,
			     size_t size, struct naming_result *named);
	/* The weight of one sample; known after attach. NULL: 0, values are exact. */
	uint64_t (*period_ns)(void *state);
	/* What drives it, for people: "cycles", "cpu-clock". NULL: its name says it. */
	const char *(*clock)(void *state);
	void (*tally)(void *state, struct family_tally *t); /* NULL: it loses and counts nothing */
	/* Of the tally, `seen` alone: called from another thread while the loop hangs, so it only
	 * asks the kernel. NULL: its tally has none. */
	uint64_t (*seen)(void *state);
	/* Do less, by this number of steps (schema/families/families.h); 0: do everything. sonded
	 * sends it while the capture runs. May be NULL. */
	void (*reduce)(void *state, uint32_t step);
	void (*detach)(void *state); /* no more events come after it; NULL: none */
	void (*close)(void *state);
	/* Add what this family needs of the host to `--check`. May be NULL. */
	void (*check)(struct check *c, uint32_t freq);
};

/* The whole program: parses argv, runs, returns the exit code. */
int family_main(const struct family *f, int argc, char **argv);

#endif
