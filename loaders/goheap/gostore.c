/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/gostore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/names/source_location.h"
#include "probes/lib/stack.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/image/go.h"
#include "schema/store/write/writer.h"

#define FRAMES_KEPT    65536      /* more memory than this is freed after a reading */
#define SIZE_MAX_LABEL UINT32_MAX /* larger objects are all sampled: scaling is by 1 */
#define PHYSICAL_SINCE 23         /* Go 1.23: block and mutex stacks are of physical frames */

struct telling {
	struct goproc *p;
	struct family_host *h;
	struct hostmaps_process *hp;
	int64_t time_ns;             /* boot clock */
	uint64_t segment;            /* of the store */
	const struct image *index;   /* of the executable; NULL: unknown */
	uint64_t start, end, offset; /* its code, as it is mapped */
	bool stale;
};

static int64_t utc(const struct telling *t)
{
	return t->time_ns + t->h->offset_ns;
}

static struct stack_event event_of(const struct telling *t)
{
	struct stack_event ev = {.time_ns = (uint64_t)t->time_ns,
				 .start_ns = t->hp->start_ns,
				 .tgid = t->hp->tgid,
				 .tid = t->hp->tgid,
				 .exec_id = t->hp->exec_id,
				 .end = STACK_END_ROOT};

	strncpy(ev.thread, t->hp->comm, sizeof(ev.thread) - 1);
	return ev;
}

/* If it is unknown, it counts as new. */
static unsigned int minor_of(const char *version)
{
	const unsigned int minor = image_go_minor(version);

	return minor ? minor : UINT32_MAX;
}

static bool is_logical(const struct goproc *p, const struct site *s)
{
	return s->kind == BUCKETS_MEMORY || minor_of(p->go.version) < PHYSICAL_SINCE;
}

/* ---- ids ---- */

static void process_id(struct telling *t)
{
	struct stack_event ev = event_of(t);
	struct naming_result named;

	naming_stack(t->h->naming, &ev, t->p->frames, &named);
	t->p->process = named.process;
	t->p->epoch = store_epoch(t->h->store);
}

static const enum store_kind counter_kind[BUCKETS_KINDS] = {0, STORE_KIND_ALLOC, STORE_KIND_BLOCK,
							    STORE_KIND_MUTEX};

/* ---- the runtime's own frames ---- */

static bool is_runtime(const struct telling *t, uint64_t pc)
{
	const char *name;
	struct source_location at;

	if (!t->index || pc < t->start || pc > t->end ||
	    !source_location_find(t->index, pc - t->start + t->offset, true, &at))
		return false;
	name = at.n > 1 && at.at[0].function ? at.at[0].function : at.symbol.name;
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "internal/runtime/", 17);
}

/* The runtime's own frames do not show who made an allocation: like Go's own profiles, stacks begin
 * at the first frame outside the runtime, and are complete if all frames are the runtime's
 * (runtime/pprof/protomem.go). */
static uint32_t hidden(const struct telling *t, const struct site *s)
{
	const uint64_t *pcs = t->p->frames + s->stack_at;

	if (s->kind != BUCKETS_MEMORY)
		return 0;
	for (uint32_t i = 0; i < s->depth; i++)
		if (!is_runtime(t, pcs[i]))
			return i;
	return 0;
}

/* Series of a bucket: its stack, and the size of its objects. false: its frames were not kept in
 * this reading. */
static bool series_make(struct telling *t, struct site *s)
{
	struct store_writer *w = t->h->store;
	struct stack_event ev = event_of(t);
	uint32_t label = s->size > SIZE_MAX_LABEL ? SIZE_MAX_LABEL : (uint32_t)s->size;
	struct naming_result named;
	uint32_t from, depth;

	if (s->stack_at == UINT64_MAX)
		return false;
	from = hidden(t, s);
	depth = s->depth - from;
	ev.n_user = (uint16_t)(depth < STACK_USER_MAX ? depth : STACK_USER_MAX);
	ev.flags = is_logical(t->p, s) ? STACK_F_LOGICAL : 0;
	naming_stack(t->h->naming, &ev, t->p->frames + s->stack_at + from, &named);
	t->p->process = named.process;
	s->counter = store_series_labelled(w, t->h->run, named.process, "", 0, named.stack,
					   counter_kind[s->kind], label);
	s->gauge = s->kind == BUCKETS_MEMORY ?
			   store_series_labelled(w, t->h->run, named.process, "", 0, named.stack,
						 STORE_KIND_INUSE, label) :
			   0;
	s->epoch = t->p->epoch = store_epoch(w);
	return true;
}

/* ---- amounts ---- */

static int counter_tell(struct telling *t, struct site *s)
{
	struct site_amounts since = site_since(s);
	struct store_amount a = {.n = since.n, .value = since.value};
	int err = since.n ? store_amount(t->h->store, s->counter, utc(t), &a) : 0;

	if (!err && since.n) {
		t->h->added += since.n;
		site_counted(s);
	}
	return err;
}

/* The store may invalidate ids meanwhile: one retry, then the next reading goes on. */
static void site_tell(struct telling *t, struct site *s)
{
	int err = -ESTALE;

	if (!s->kind || !s->read)
		return;
	if (!site_has_news(s, t->p->sum.nothing_published, t->segment)) {
		if ((t->p->n_armed || s->standing) && s->epoch != store_epoch(t->h->store))
			series_make(t, s); /* for the last profile, when there are no frames to
					      name, and for the sums */
		return;
	}
	for (int i = 0; i < 3 && err == -ESTALE; i++) {
		if (s->epoch != store_epoch(t->h->store) && !series_make(t, s))
			break;
		err = counter_tell(t, s);
		if (err == -ESTALE)
			s->epoch = 0;
	}
	t->stale |= err != 0;
}

/* ---- gauges ---- */

/* Buckets whose stacks differ only in the runtime's frames, or within a line, are one series: their
 * gauges are added up and stored together, because a gauge's amount replaces the one before. */
struct sums {
	struct idmap places; /* gauge -> its place in `all` */
	struct store_amount *all;
	size_t n, cap;
};

static void sums_release(struct sums *s)
{
	idmap_release(&s->places);
	free(s->all);
}

static void sums_add(struct sums *s, uint32_t gauge, const struct site_amounts *a)
{
	uint64_t at;

	if (!idmap_get(&s->places, gauge, &at)) {
		at = s->n;
		mem_grow(s->all, s->n, s->cap);
		s->all[s->n++] = (struct store_amount){0};
		idmap_set(&s->places, gauge, at);
	}
	s->all[at].n += a->n;
	s->all[at].value += a->value;
}

/* false: ids are void, or not made yet. */
static bool sums_make(const struct telling *t, struct sums *sums)
{
	for (uint32_t i = 0; i < t->p->n_sites; i++) {
		const struct site *s = &t->p->sites[i];
		struct site_amounts now = site_standing(s, t->p->sum.nothing_published);
		bool valid = s->gauge && s->epoch == store_epoch(t->h->store);

		if (now.n && valid)
			sums_add(sums, s->gauge, &now);
		else if (now.n && s->read)
			return false;
	}
	return true;
}

static int standing_tell(struct telling *t, struct site *s, const struct sums *sums)
{
	uint64_t now = site_standing(s, t->p->sum.nothing_published).n, at;
	bool changed = s->told_in == t->segment ? now != s->standing : now != 0;
	struct store_amount a = {0};
	int err = 0;

	if (s->gauge && changed && s->epoch != store_epoch(t->h->store))
		return -ESTALE;
	if (s->gauge && changed) {
		if (idmap_get(&sums->places, s->gauge, &at))
			a = sums->all[at];
		err = store_amount(t->h->store, s->gauge, utc(t), &a);
		t->h->added += !err;
	}
	if (err)
		return err;
	s->standing = now;
	s->told_in = t->segment;
	return 0;
}

/* All of them, or the rest is left to the next reading. */
static void standings_tell(struct telling *t)
{
	struct sums sums = {0};
	int err = sums_make(t, &sums) ? 0 : -ESTALE;

	for (uint32_t i = 0; i < t->p->n_sites && !err; i++) {
		struct site *s = &t->p->sites[i];

		if (s->kind && s->read && site_has_news(s, t->p->sum.nothing_published, t->segment))
			err = standing_tell(t, s, &sums);
	}
	t->stale |= err != 0;
	sums_release(&sums);
}

static void rate_tell(struct telling *t)
{
	const struct buckets_sum *sum = &t->p->sum;
	int64_t rate = sum->mem_rate_known && sum->mem_rate > 0 ? sum->mem_rate : 0;

	if (rate == t->p->rate_told)
		return;
	store_rate(t->h->store, t->h->run, t->p->process, utc(t), (uint64_t)rate);
	t->p->rate_told = rate;
}

/* A gauge is valid as long as its process reports something: so each reading stores an empty amount
 * without a stack. */
static void alive_tell(struct telling *t)
{
	struct store_writer *w = t->h->store;
	uint32_t series = store_series(w, t->h->run, t->p->process, "", 0, store_stack(w, NULL, 0),
				       STORE_KIND_INUSE);

	if (!store_amount(w, series, utc(t), &(struct store_amount){0}))
		t->h->added++;
}

static void frames_release(struct goproc *p)
{
	if (p->cap_frames <= FRAMES_KEPT)
		return;
	free(p->frames);
	p->frames = NULL;
	p->n_frames = p->cap_frames = 0;
}

static void segment_begin(struct telling *t)
{
	t->segment = store_gauge_epoch(t->h->store) + 1;
	if (t->segment == t->p->segment)
		return;
	t->p->segment = t->segment;
	t->p->rate_told = -1;
	t->p->state_told = 0;
}

void gostore(struct goproc *p, struct family_host *h, struct hostmaps_process *hp)
{
	struct telling t = {
		.p = p, .h = h, .hp = hp, .time_ns = (int64_t)hostmaps_watermark(h->maps)};

	struct hostmaps_image *img = hostmaps_exe(h->maps, hp, &t.start, &t.end, &t.offset);

	t.index = img ? img->index : NULL;
	segment_begin(&t);
	process_id(&t);
	alive_tell(&t);
	rate_tell(&t);
	for (uint32_t i = 0; i < p->n_sites; i++)
		site_tell(&t, &p->sites[i]);
	standings_tell(&t);
	p->unfinished = t.stale;
	frames_release(p);
	gostore_state(p, h, hp);
}

/* ---- notes ---- */

static void note(const struct family_host *h, const struct goproc *p, const char *key,
		 const char *value)
{
	store_process_note(h->store, h->run, p->process, key, value);
}

/* What the readings came to: as a word, and in words where it is not simply "read". */
static const char *state_of(const struct goproc *p, const char **reason)
{
	enum buckets_state memory = p->sum.state[BUCKETS_MEMORY], all = p->sum.state[0];

	*reason = "";
	if (all != BUCKETS_OK) {
		*reason = buckets_state_text(all);
		return "not read";
	}
	if (p->switchon.why[0]) {
		*reason = p->switchon.why;
		return p->switchon.force ? "read" : "off";
	}
	if (memory == BUCKETS_OFF || (p->sum.mem_rate_known && p->sum.mem_rate <= 0)) {
		*reason = buckets_state_text(BUCKETS_OFF);
		return "off";
	}
	if (memory == BUCKETS_OK)
		return "read";
	*reason = buckets_state_text(memory);
	return memory == BUCKETS_EMPTY || memory == BUCKETS_BROKEN || memory == BUCKETS_TOO_MANY ?
		       "read" :
		       "not read";
}

static void notes_write(const struct family_host *h, const struct goproc *p, const char *state,
			const char *reason)
{
	char main[168], text[32];

	snprintf(main, sizeof(main), "%.*s%s%.*s", (int)sizeof(p->go.main_path), p->go.main_path,
		 p->go.main_version[0] ? "@" : "", (int)sizeof(p->go.main_version),
		 p->go.main_version);
	snprintf(text, sizeof(text), "%u", p->sum.count[BUCKETS_MEMORY]);
	note(h, p, "version", p->go.version);
	note(h, p, "main", main);
	note(h, p, "cgo", p->go.flags & IMAGE_GO_CGO ? "1" : "0");
	note(h, p, "state", state);
	note(h, p, "reason", reason);
	note(h, p, "buckets", text);
	note(h, p, "last", p->last);
}

void gostore_state(struct goproc *p, struct family_host *h, struct hostmaps_process *hp)
{
	struct telling t = {
		.p = p, .h = h, .hp = hp, .time_ns = (int64_t)hostmaps_watermark(h->maps)};
	const char *reason, *state = state_of(p, &reason);
	uint64_t told;

	segment_begin(&t);
	told = hash_bytes(hash_u64(hash_bytes(HASH_SEED, state, strlen(state)),
				   p->sum.count[BUCKETS_MEMORY]),
			  reason, strlen(reason)) |
	       1;
	told ^= p->last[0] ? 2 : 0;
	if (told == p->state_told)
		return;
	if (!p->process || p->epoch != store_epoch(h->store))
		process_id(&t);
	notes_write(h, p, state, reason);
	p->state_told = told;
}
