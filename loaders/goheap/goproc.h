/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goproc: one Go process: where its profiles are, what was read of them, and what is already
 * stored.
 *
 * A reading collects the buckets (buckets.h), keeps the frames of those that are new or whose ids
 * the store no longer knows, then names and stores what has changed, one by one: if the store
 * invalidates all ids in between, the next reading goes on from there. While the executable's
 * source lines are still being read, readings are kept and not stored; nothing is lost, since
 * counts are cumulative.
 */
#ifndef SONDE_GOHEAP_GOPROC_H
#define SONDE_GOHEAP_GOPROC_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "loaders/goheap/buckets.h"
#include "loaders/goheap/bucketsmem.h"
#include "loaders/goheap/site.h"
#include "loaders/goheap/switchon.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"

struct goproc_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

/* How far it is identified as a Go program. */
enum goproc_found {
	GOPROC_ASKED, /* its index is awaited */
	GOPROC_NO_GO,
	GOPROC_GO,
	GOPROC_NO_INDEX /* none can be made: see the reason */
};

struct goproc {
	struct goproc_key key;
	enum goproc_found found;
	bool covered;  /* by the capture's target */
	bool in_scope; /* and not left out by the rules */
	bool has_base, base_due, ended;
	uint32_t image; /* of its executable, as hostmaps numbers it; another one: it exec'ed */
	uint64_t image_generation;
	struct image_go_record go;
	struct buckets_layout layout;
	struct bucketsmem memory;
	struct buckets *buckets; /* NULL: not open; borrows `memory` */
	struct buckets_sum sum;  /* of the last reading */
	struct site *sites;      /* by bucket.index */
	uint32_t n_sites, cap_sites;
	uint32_t *armed; /* lastprof's: sites whose addresses it left, in their order */
	uint32_t n_armed, cap_armed, armed_upto;
	uint64_t *frames; /* of this reading */
	size_t n_frames, cap_frames;
	uint32_t epoch, process; /* of the store */
	uint64_t segment;    /* of the store: store_gauge_epoch + 1; 0: nothing was stored yet */
	int64_t rate_told;   /* -1: not yet in this segment */
	uint64_t state_told; /* a hash of what the notes say of it; 0: nothing in this segment */
	uint64_t readings;
	struct switchon switchon;
	bool unfinished; /* something is left that only another reading brings to the store */
	char last[32];   /* how it ended, where its last profile came; "" */
	int64_t gone_ns; /* since when it is no more, 0: it runs */
	int64_t seen_ns, next_ns, pause_ns, lines_until_ns; /* boot clock */
	UT_hash_handle hh;
};

void goproc_release(struct goproc *p); /* all but the struct itself */
/* Open what hostmaps knows of its executable now; later calls notice that it is another one. */
void goproc_find(struct goproc *p, struct hostmaps *hm, struct hostmaps_process *hp);
/* Read, and keep what was read: p->sum, p->sites. */
void goproc_collect(struct goproc *p, const struct family_host *h);
/* Reads it, and stores what has changed. false: it has ended, or its pid is reused. */
bool goproc_read(struct goproc *p, struct family_host *h, struct hostmaps_process *hp,
		 int64_t now_ns);

#endif
