/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scripts: the loader's part of script frames (probes/runtimes/runtime.h): the objects to which the
 * program gave ids, in the maps `objects` and `names` of its object. The maps belong to this
 * capture, so that a later one misses no name that an earlier one has taken. When `objects` is
 * three quarters full the oldest objects are removed; the program gives them a new id when it meets
 * them again.
 */
#ifndef SONDE_BPF_SCRIPTS_H
#define SONDE_BPF_SCRIPTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/lib/stack.h"
#include "probes/runtimes/runtime.h"

struct bpf_object;

struct scripts {
	int objects_fd, names_fd,
		walks_fd,  /* borrowed from the object; -1: its programs do not walk scripts */
		erlang_fd; /* the map `erlang`, the same */
	uint32_t max;
	struct script_given {
		struct script_key key;
		uint32_t id;
		int64_t gone_ns; /* 0: it is in the map */
	} * given;               /* oldest first; those removed from the map come first */
	size_t n, cap, gone;
};

void scripts_open(struct scripts *s, const struct bpf_object *obj); /* NULL: -1 in all */
void scripts_release(struct scripts *s);
/* The names of this object have arrived. */
void scripts_took(struct scripts *s, const struct script_key *key, uint32_t id);
/* For late_jit_on_erlang; ctx is a struct scripts. */
void scripts_erlang(void *ctx, uint32_t tgid, uint32_t tid, const struct stack_erlang *erlang);
/* About once a second: make room. Calls `drop` with ids that no frame can have any more. */
void scripts_tick(struct scripts *s, int64_t now_ns, void (*drop)(void *ctx, uint32_t id),
		  void *ctx);
/* Sums of all CPUs. false: it has none. */
bool scripts_tally(const struct scripts *s, struct script_tally *out);

/* The runtimes whose frames a program walks, as bits by enum runtime_kind; tries go from all to
 * none, since kernels refuse what is too much for their verifier. */
#define SCRIPTS_TRIES 3
extern const uint32_t SCRIPTS_KINDS[SCRIPTS_TRIES];

/* Before load: does this object's program walk script frames? If not, its maps for that become as
 * small as possible. */
void scripts_configure(struct bpf_object *obj, uint32_t kinds);
/* Loading with these kinds failed with `err`; true: the walkers may be the reason, so try fewer. */
bool scripts_refused(int err);
/* Its configuration. false: this object has no script frames. */
bool scripts_configured(const struct bpf_object *obj, uint32_t *kinds);

#endif
