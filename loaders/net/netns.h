/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns: the network namespaces that processes are in, with what the kernel counts in each
 * (/proc/PID/net/snmp and netstat), and how much of that was attributed to a process: the rest has
 * no known process.
 */
#ifndef SONDE_NET_NETNS_H
#define SONDE_NET_NETNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "schema/base/idmap.h"
#include "schema/base/strbuf.h"
#include "schema/facts/net.h"

struct netns;

struct netnses {
	struct netns *all;
	struct idmap known; /* namespace by process: its number */
	struct strbuf text;
	uint32_t round;
	uint64_t own; /* the host's: that of init */
};

void netnses_release(struct netnses *ns);
/* `n` more of a NETNS_SEEN_ column. */
void netnses_seen(struct netnses *ns, uint32_t netns, int column, uint64_t n);
/* Looks for namespaces, reads each, and stores what moved; the first reading of one is where its
 * counters begin. */
void netnses_read(struct netnses *ns, struct family_host *h, int64_t now_ns);

#endif
