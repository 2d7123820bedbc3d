/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scripts: the loader's part of script frames (probes/runtimes/runtime.h): which objects the
 * program has given ids to, in the maps `objects` and `names` of its object. They are of this
 * capture alone, so that one which begins later misses no name that an earlier one has taken. When
 * `objects` is three quarters full, what came first goes: it gets another id when it is met again.
 */
#ifndef SONDE_BPF_SCRIPTS_H
#define SONDE_BPF_SCRIPTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/runtimes/runtime.h"

struct bpf_object;

struct scripts {
	int objects_fd, names_fd,
		walks_fd; /* borrowed from the object; -1: its programs walk no scripts */
	uint32_t max;
	struct script_given {
		struct script_key key;
		uint32_t id;
		int64_t gone_ns; /* 0: it is in the map */
	} * given;               /* in the order they came; those that are gone first */
	size_t n, cap, gone;
};

void scripts_open(struct scripts *s, const struct bpf_object *obj); /* NULL: -1 in all */
void scripts_release(struct scripts *s);
/* The names of this one have come. */
void scripts_took(struct scripts *s, const struct script_key *key, uint32_t id);
/* About once a second: makes room. `drop` is told the ids of which no frame can come any more. */
void scripts_tick(struct scripts *s, int64_t now_ns, void (*drop)(void *ctx, uint32_t id),
		  void *ctx);
/* Sums of all CPUs. false: it has none. */
bool scripts_tally(const struct scripts *s, struct script_tally *out);

/* What of script frames a program walks: bits by enum runtime_kind, from all to none. Kernels
 * refuse what is too much for their verifier. */
#define SCRIPTS_TRIES 3
extern const uint32_t SCRIPTS_KINDS[SCRIPTS_TRIES];

/* Before load: does this object's program walk script frames? Where not, its maps for that are as
 * small as can be. */
void scripts_configure(struct bpf_object *obj, uint32_t kinds);
/* Loading it so failed with `err`, which may be the walker's: it is worth another try with less. */
bool scripts_refused(int err);
/* How it was configured. false: this object knows nothing of scripts. */
bool scripts_configured(const struct bpf_object *obj, uint32_t *kinds);

#endif
