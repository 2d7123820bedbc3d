/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_who: whose connection it is, kept at its first event: a process that lives for a second or two
 * may be gone, and forgotten, before its requests are stored. An LRU map is no burden here: a
 * process writes it once, with its first connection.
 */
#ifndef SONDE_PROBES_L7_WHO_BPF_H
#define SONDE_PROBES_L7_WHO_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#include "probes/l7.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, L7_WHOS);
	__type(key, struct l7_who_key);
	__type(value, struct l7_who);
} whos SEC(".maps");

const struct l7_who who_none = {};

/* The value is filled in its place: the stack of the calls above has no room for it. */
static __always_inline void who_keep(const struct l7_conn *c)
{
	struct l7_who_key key = {.start_ns = c->start_ns, .tgid = c->h.tgid, .exec_id = c->exec_id};
	struct l7_who *who;

	if (bpf_map_lookup_elem(&whos, &key) ||
	    bpf_map_update_elem(&whos, &key, &who_none, BPF_ANY))
		return;
	who = bpf_map_lookup_elem(&whos, &key);
	if (!who)
		return;
	bpf_get_current_comm(who->comm, sizeof(who->comm));
	who->cgroup_id = bpf_get_current_cgroup_id();
}

#endif
