/* SPDX-License-Identifier: Apache-2.0 */
/* goproc: finding and reading one process; gostore.c brings what was read to the store. */
#include "loaders/goheap/goproc.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/goheap/gostore.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/image/go.h"
#include "schema/image/image.h"
#include "schema/store/write/writer.h"

#define LINES_NS   (10 * NSEC_PER_SEC) /* an index without lines is taken after so long */
#define SEGMENTS   16
#define BASE_TRIES 4

void goproc_release(struct goproc *p)
{
	switchon_release(p);
	buckets_close(p->buckets);
	free(p->sites);
	free(p->frames);
	free(p->armed);
	p->armed = NULL;
	p->n_armed = p->cap_armed = p->armed_upto = 0;
	p->buckets = NULL;
	p->sites = NULL;
	p->frames = NULL;
	p->n_sites = p->cap_sites = 0;
	p->n_frames = p->cap_frames = 0;
}

/* ---- finding ---- */

/* Where the program lies: the difference between its addresses and the file's own. */
static bool load_bias(const struct image *index, uint64_t start, uint64_t end, uint64_t offset,
		      uint64_t *bias)
{
	struct image_exec segments[SEGMENTS];
	size_t n = image_exec_segments(index, segments, SEGMENTS);
	uint64_t vaddr;

	if (!image_exec_vaddr(segments, n, offset, end - start, &vaddr))
		return false;
	*bias = start - vaddr;
	return true;
}

static void found_go(struct goproc *p, const struct hostmaps_image *img, uint64_t bias,
		     int64_t now_ns)
{
	struct buckets_memory memory = bucketsmem_init(&p->memory, (int32_t)p->key.tgid);

	p->found = GOPROC_GO;
	buckets_layout_make(&p->go, bias, &p->layout);
	p->buckets = buckets_open(&p->layout, &memory);
	p->lines_until_ns = image_ident(img->index)->lines_later ? now_ns + LINES_NS : 0;
}

/* Another program than the one that was read: all that was known of it is void. */
static void forget(struct goproc *p)
{
	goproc_release(p);
	p->found = GOPROC_ASKED;
	p->has_base = true; /* what it has was allocated since its exec */
	p->epoch = 0;
	p->rate_told = -1;
	p->state_told = 0;
	p->segment = 0;
	p->image = 0;
}

void goproc_find(struct goproc *p, struct hostmaps *hm, struct hostmaps_process *hp)
{
	uint64_t start, end, offset, bias;
	struct hostmaps_image *img = hostmaps_exe(hm, hp, &start, &end, &offset);

	if (!img)
		return;
	if (p->image && (p->image != img->id || p->image_generation != img->generation) &&
	    p->found == GOPROC_GO)
		forget(p);
	p->image = img->id;
	p->image_generation = img->generation;
	if (p->found == GOPROC_GO) {
		if (!image_ident(img->index)->lines_later)
			p->lines_until_ns = 0;
		return;
	}
	if (!img->state)
		return;
	if (!img->index)
		p->found = GOPROC_NO_INDEX;
	else if (!image_go(img->index, &p->go))
		p->found = GOPROC_NO_GO;
	else if (load_bias(img->index, start, end, offset, &bias))
		found_go(p, img, bias, clock_boot_ns());
}

/* ---- reading ---- */

static struct site *site_of(struct goproc *p, uint32_t index)
{
	while (p->n_sites <= index) {
		mem_grow(p->sites, p->n_sites, p->cap_sites);
		p->sites[p->n_sites++] = (struct site){0};
	}
	return &p->sites[index];
}

/* Names are made after the reading, when the bucket is no longer there to look at. */
static void frames_keep(struct goproc *p, struct site *s, const struct bucket *b)
{
	size_t need = p->n_frames + b->depth;

	if (need > p->cap_frames) {
		p->cap_frames = need * 2;
		p->frames = mem_realloc(p->frames, p->cap_frames * sizeof(*p->frames));
	}
	memcpy(p->frames + p->n_frames, b->pcs, b->depth * sizeof(*b->pcs));
	s->stack_at = p->n_frames;
	s->depth = b->depth;
	p->n_frames = need;
}

struct reading {
	struct goproc *p;
	uint32_t epoch; /* of the store's ids */
	uint64_t segment;
};

static int on_bucket(void *ctx, const struct bucket *b)
{
	struct reading *r = ctx;
	struct site *s = site_of(r->p, b->index);
	double rate = r->p->sum.ticks_per_second;

	site_read(s, b, rate > 0 ? 1e9 / rate : 0);
	s->stack_at = UINT64_MAX;
	if (s->epoch != r->epoch && (r->p->n_armed || s->standing ||
				     site_has_news(s, r->p->sum.nothing_published, r->segment)))
		frames_keep(r->p, s, b);
	return 0;
}

/* Is what has this number still the process that is meant? */
static bool still_there(const struct goproc *p)
{
	uint64_t tick = proc_ticks_ns(1);
	struct proc_stat st;

	return !proc_read_stat(p->key.tgid, &st) &&
	       proc_ticks_ns(st.start_ticks) / tick == p->key.start_ns / tick;
}

void goproc_collect(struct goproc *p, const struct family_host *h)
{
	struct reading r = {
		.p = p, .epoch = store_epoch(h->store), .segment = store_gauge_epoch(h->store) + 1};
	int err;

	p->n_frames = 0;
	for (uint32_t i = 0; i < p->n_sites; i++)
		p->sites[i].read = false;
	err = buckets_collect(p->buckets, on_bucket, &r, &p->sum);
	if (err)
		log_warn("process %u: cannot store its heap profile: %s", p->key.tgid,
			 strerror(-err));
}

/* The first reading of a process that ran before: what is there is its base, wholly. */
static void take_base(struct goproc *p, const struct family_host *h)
{
	for (int i = 0; i < BASE_TRIES && (!i || p->sum.dropped); i++)
		goproc_collect(p, h);
	for (uint32_t i = 0; i < p->n_sites; i++)
		site_base(&p->sites[i]);
	p->has_base = true;
}

bool goproc_read(struct goproc *p, struct family_host *h, struct hostmaps_process *hp,
		 int64_t now_ns)
{
	if (!p->buckets || !still_there(p))
		return false;
	if (!p->readings)
		goproc_collect(p, h); /* learns the clock that mutex and block profiles count in,
					 and what is published */
	if (p->has_base)
		goproc_collect(p, h);
	else
		take_base(p, h);
	p->readings++;
	switchon_leave_out(p);
	if (p->sum.state[0] == BUCKETS_GONE || !still_there(p))
		return false;
	if (p->sum.state[0] != BUCKETS_OK) {
		gostore_state(p, h, hp);
		return true;
	}
	if (p->lines_until_ns && now_ns < p->lines_until_ns)
		return true;
	gostore(p, h, hp);
	return true;
}
