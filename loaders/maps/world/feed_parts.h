/* SPDX-License-Identifier: Apache-2.0 */
/* feed_parts: feed as its own files see it. */
#ifndef SONDE_MAPS_FEED_PARTS_H
#define SONDE_MAPS_FEED_PARTS_H

#include "loaders/maps/world/feed.h"
#include "loaders/maps/world/procscan.h"
#include "schema/base/strbuf.h"

struct bpf_link;
struct maps_bpf;
struct maps_event;
struct perfring;
struct ring_buffer;

/* One record, where it lies in `bytes`. */
struct item {
	uint64_t time_ns;
	uint32_t at, len;
	bool program; /* struct maps_event and arguments; else a side-band record */
};

struct feed {
	struct world *world;
	struct perfring
		*perf; /* NULL: no side-band; then there is no program either, and `scan` looks */
	struct procscan scan;
	struct maps_bpf *skel; /* NULL: degraded */
	struct ring_buffer *ring;
	struct bpf_link *iter;
	int epoll_fd;
	struct strbuf bytes, carried;
	struct item *items;
	size_t n, cap;
	uint64_t done_ns; /* T of the last reading */
	uint64_t lost, late;
	uint64_t program_lost; /* as last read */
	uint64_t missed; /* runs of the programs that the kernel left out, when feed_cost asked last
			  */
	uint64_t asked_ns,
		missed_since_ns; /* that was then; 0: none was left out since feed_lost */
	/* reconcile: what the iterator saw, and when */
	struct maps_event *look;
	size_t n_look;
	uint64_t look_ns;
	uint8_t round;
	bool seeded;
	bool busy; /* the last reading found something, or left something for the next */
};

#endif
