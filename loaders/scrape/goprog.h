/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goprog: one Go program: whether and where it offers profiles, what was read of them, and what is
 * stored.
 *
 * Counts of a program are cumulative: if a program ran before the capture, its first answer is the
 * base; each later one adds the increase (Go scales times by a clock rate that it learns: a
 * decrease adds nothing). Current values (inuse, goroutines) are stored as they are. A CPU profile
 * covers its own period.
 */
#ifndef SONDE_SCRAPE_GOPROG_H
#define SONDE_SCRAPE_GOPROG_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/scrape/fetch.h"
#include "schema/base/idmap.h"
#include "schema/image/go.h"

struct goprog_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

/* How far it is identified. */
enum goprog_found {
	GOPROG_UNKNOWN, /* its index is awaited */
	GOPROG_NO_GO,
	GOPROG_NO_PPROF, /* it links nothing that would offer profiles */
	GOPROG_OFFERS    /* it may */
};

struct kept { /* a stack of a profile that is asked for again and again */
	UT_hash_handle hh;
	uint64_t told[2]; /* of what counts up: as much is in the store, or was there before */
	uint64_t now[WIRE_VALUES]; /* of the answer with this number: */
	uint64_t reading;
	uint32_t counter, gauge, epoch; /* series of the store */
	bool stands;                    /* the store has something of it */
	uint32_t n;
	uint64_t frames[];
};

struct gauge {
	uint64_t n, value, told_n, told_value, segment;
	uint32_t series;
};

struct profile {
	struct fetch *fetch; /* NULL: none is on its way */
	int64_t next_ns;     /* boot clock */
	struct kept *kept;
	uint64_t readings, left_out;
	bool has_base;
	uint32_t fails;  /* in a row */
	char reason[96]; /* why it is not read; "": it is */
	struct gauge *gauges;
	uint32_t n_gauges, cap_gauges;
	struct idmap gauge_of; /* series -> its place + 1 */
	uint32_t gauges_epoch;
};

struct goprog {
	struct goprog_key key;
	enum goprog_found found;
	bool covered, in_scope, gone;
	bool from_begin; /* it began after the capture did: all that it counts is the capture's */
	uint32_t image;  /* of its executable, as hostmaps numbers it */
	uint64_t image_generation;
	struct wire_mapping exe;
	struct image_go_record go;
	int64_t lines_until_ns; /* its names have no lines yet: till then */
	bool listens;           /* somewhere */
	bool answers;           /* its page was found, at: */
	bool other_network;
	struct listening at;
	uint64_t inode; /* of its socket */
	uint64_t *tried;
	uint32_t n_tried, cap_tried; /* sockets that have no page */
	char reason[128];            /* why it is not asked */
	struct profile profiles[WIRE_ASKS];
	uint32_t epoch, process;     /* of the store */
	uint64_t told, told_segment; /* a hash of what the notes say */
	int64_t seen_ns, search_ns, pause_ns;
	UT_hash_handle hh;
};

void goprog_release(struct goprog *p);                 /* all but the struct itself */
void goprog_refuse(struct goprog *p, const char *why); /* why it is not asked */
/* Open what hostmaps knows of its executable now; later calls notice that it is another one. */
void goprog_find(struct goprog *p, struct hostmaps *hm, struct hostmaps_process *hp,
		 int64_t now_ns);
/* Its names have lines, or will not have any soon. */
bool goprog_named(const struct goprog *p, int64_t now_ns);
/* Is what has this number still the process that is meant, and does it hold its socket? */
bool goprog_holds(const struct goprog *p);

#endif
