/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_measures: what one who (a container, or outside of containers a command) lost time to in
 * two windows: seconds each second, summed over its threads, by cause. And who or what was to do
 * with it.
 *
 * Waits are those that hold up work, as tools/waits/waitsum.h tells them: neither idle ones nor
 * those that a timer ended. What a family did not record is not known, which is not 0.
 */
#ifndef SONDE_TOOLS_EXPLAIN_CHAIN_MEASURES_H
#define SONDE_TOOLS_EXPLAIN_CHAIN_MEASURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/explain/chain/chain_files.h"
#include "tools/explain/explain.h"
#include "tools/waits/waitpairs.h"
#include "tools/waits/waitsum.h"

enum chain_what {
	CHAIN_LOCK,
	CHAIN_DISK,
	CHAIN_NETWORK,
	CHAIN_PIPE,
	CHAIN_FAULT,
	CHAIN_SLEEP,
	CHAIN_CHILD,
	CHAIN_READY,   /* could run, and had no CPU */
	CHAIN_QUOTA,   /* its CPU quota held it back */
	CHAIN_CPU,     /* ran */
	CHAIN_GC,      /* collected garbage; a part of CHAIN_CPU, or pauses of a virtual machine */
	CHAIN_RECLAIM, /* waited for memory: reclaim, swap */
	CHAIN_WHATS
};

enum chain_family { CHAIN_CPUS, CHAIN_OFFCPU, CHAIN_HOST, CHAIN_NET, CHAIN_L7, CHAIN_FAMILIES };
extern const char *const CHAIN_FAMILY_NAMES[CHAIN_FAMILIES];

struct chain_use { /* as family host counted it, in both windows */
	char *who;
	bool container;
	double cpu_us[2], throttled_us[2], periods[2], throttled[2], majflt[2], reclaim_us[2],
		met_limit[2], io_bytes[2], gc_us[2];
	int64_t mem, mem_limit; /* in the window; 0: not known, none */
};

struct chain_flow { /* connections that one opened to one service */
	char *who;
	bool container;
	char *service; /* "10.0.0.5:5432" */
	double segments[2], retrans[2], attempts[2], failed[2], refused[2], connect_us[2],
		opened[2], rtt_us[2], rtt_n[2];
};

struct chain_disk { /* a file system */
	char *mount;
	double left[2], size; /* the least that was left; bytes; left -1: not known */
	double inodes_left[2];
	bool read_only[2];
};

struct chain_measures {
	struct selection *const *wide; /* borrowed */
	const struct explain *x;       /* of the whole host; NULL: nothing is compared; borrowed */
	bool families[2][CHAIN_FAMILIES];
	double seconds[2][CHAIN_FAMILIES];
	struct waitsum *waits[2];
	struct waitpairs *neighbours[2], *wakers[2]; /* read when the first link asks */
	bool has_neighbours, has_wakers;
	struct chain_use *uses;
	size_t n_uses, cap_uses;
	struct chain_flow *flows;
	size_t n_flows, cap_flows;
	double swapped[2]; /* pages each second, of the host */
	double stolen[2];  /* by the hypervisor, share of the CPU time that there is, 0 to 1 */
	struct chain_disk *disks;
	size_t n_disks, cap_disks;
	struct chain_files files; /* of family disk */
	uint32_t cpus;
};

/* `all` false: only which families were recorded. Release in any case. */
int chain_measures_read(struct selection *const wide[2], bool all, const struct explain *x,
			struct chain_measures *out, struct err *e);
void chain_measures_release(struct chain_measures *m);

struct chain_measure {
	bool known;
	double s[2];
	/* of the most of it in the window; borrowed; NULL: not known */
	const char *function, *module, *object, *peer, *by;
	uint32_t by_tid;
	double of_function[2]; /* of CHAIN_CPU: seconds each second of that function */
};

void chain_measure(const struct chain_measures *m, const char *who, bool container,
		   enum chain_what what, struct chain_measure *out);
/* How long all others were ready and had no CPU. */
void chain_ready_of_others(const struct chain_measures *m, const char *who, bool container,
			   double s[2]);
/* NULL: nothing is known of it. */
const struct chain_use *chain_use_of(const struct chain_measures *m, const char *who,
				     bool container);
/* `service` NULL: all of them together, into *sum. False: no connection was seen. */
bool chain_flow_of(const struct chain_measures *m, const char *who, bool container,
		   const char *service, struct chain_flow *sum);

/* Nothing can be written to it any longer, and could be before: it is full, has no inodes left, or
 * became read-only. */
bool chain_disk_stops(const struct chain_disk *d);

struct chain_other {
	const char *name; /* NULL: none; borrowed */
	bool container;
	double v[2];
	const char *function; /* of wakers: where it ended the waits; NULL */
};
/* Who had the CPU more than before while `who` was ready; exact pairs where they were recorded,
 * else (*guessed) whose CPU time grew most. */
void chain_neighbour(struct chain_measures *m, const char *who, bool container,
		     struct chain_other *out, bool *guessed);
/* Who ended its waits of that reason. */
void chain_waker(struct chain_measures *m, const char *who, bool container, const char *reason,
		 struct chain_other *out);
/* The process of `who` that ended at least half of the time of its other processes' waits of that
 * reason; 0: none did. */
uint32_t chain_waker_pid(struct chain_measures *m, const char *who, bool container,
			 const char *reason);
/* Whose bytes read and written grew most, in bytes each second; not `who`. */
void chain_reader(const struct chain_measures *m, const char *who, bool container,
		  struct chain_other *out);

#endif
