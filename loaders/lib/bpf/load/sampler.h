/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler: one perf event on every online CPU, all running one BPF program: a clock (hardware
 * cycles by frequency where there is a PMU, else the software clock), or page faults, each
 * so-and-so-many-th of them. CPUs that come are taken in, those that go are let go. Where the
 * kernel holds a clock's samples back (kernel.perf_event_max_sample_rate), it says so in each
 * event's buffer; that time is turned into a count.
 */
#ifndef SONDE_BPF_SAMPLER_H
#define SONDE_BPF_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/load/cpulist.h"
#include "schema/base/err.h"

struct sampler_cpu {
	int fd;                /* -1: not sampled */
	void *ring;            /* where the kernel reports throttling; NULL: not mapped */
	uint64_t throttled_at; /* boot ns, 0: not now */
	uint64_t enabled_ns;   /* how long it has run, as last read */
};

struct sampler {
	struct sampler_cpu *cpus; /* CPULIST_MAX of them, NULL before sampler_start */
	uint32_t n_cpus;          /* none at this number or above it has ever been sampled */
	uint32_t freq; /* in force: the kernel's limit may be lower than what was asked */
	int prog_fd;
	bool cycles;
	bool major;      /* page faults that had to read, alone */
	uint64_t period; /* of page faults; 0: it is a clock */
	uint64_t throttled_ns;
};

/* Which clock, and how fast: cycles if `cycles` comes back true. EXIT_PERMISSION or
 * EXIT_PREREQUISITE. */
int sampler_probe(uint32_t freq, bool *cycles, struct err *e);
/* The rate that the kernel allows here: <= freq. */
uint32_t sampler_allowed(uint32_t freq);

int sampler_start(struct sampler *s, uint32_t freq, int prog_fd, struct err *e);
/* Page faults of user code and of the kernel in user memory, every `period`-th on each CPU; the
 * program finds the address in its context (`addr`), and the period that held. `major`: only those
 * that had to read the page, from a file or from swap. */
int sampler_start_faults(struct sampler *s, uint64_t period, bool major, int prog_fd,
			 struct err *e);
int sampler_probe_faults(struct err *e);
/* Page faults alone: from now on. */
void sampler_set_period(struct sampler *s, uint64_t period);
void sampler_tick(struct sampler *s);
uint64_t sampler_period_ns(const struct sampler *s);
/* Samples that throttling has cost so far: time held back / period. */
uint64_t sampler_throttled(struct sampler *s);
void sampler_stop(struct sampler *s); /* a zeroed one is fine */

#endif
