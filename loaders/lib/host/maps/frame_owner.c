/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_owner: which mapping a frame belonged to at the time of its sample.
 *
 * After a loss (MP_LOST, or a restarted sonde-maps) every process sets its mappings aside
 * (`before`) and receives them again. At SEEDED, those that did not come again end at the time of
 * the loss. A mapping that comes again unchanged keeps its time, unless it had replaced another one
 * shortly before: it may have given way and come back (two libraries in turn). A new mapping is
 * valid from the time in its message: nothing is assumed for the time before.
 *
 * How a frame finds its owner (probes/lib/stack.h). A frame of tables was correct as of tables_ns;
 * the sample is of time_ns.
 *   1. If nothing of the process changed in (tables_ns, time_ns], it is (image, offset) unchanged.
 *   2. Else it is turned back into the address at which the mappings as of tables_ns show it, and
 *      that address is looked up as of time_ns. The same place of the same file: unchanged.
 *      Another: the frame is named by that one, and is stale: its callers were found with the wrong
 *      file's rows.
 *   3. If two mappings showed the same place of the file, and only one of them is unchanged, it is
 *      unknown which one was meant: the frame is unknown.
 *   4. A raw address is looked up as of time_ns; with tables it is stale if another mapping held it
 *      as of tables_ns.
 *   5. If sonde-maps has not reached time_ns yet (the caller did not wait longer), the address may
 *      be anything in a process that was changing its mappings just before: unknown, and stale.
 * The first mappings of a process also count for older tables. A forked child begins with a copy of
 * its parent's tables, which may be older than the fork: for times before the fork the parent's
 * mappings count.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/private.h"
#include "probes/lib/stack.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/image/image.h"

#define RESTLESS_NS (5 * NSEC_PER_SEC)
#define PARENTS_MAX 4 /* successive forks, faster than tables are published */

/* ---- what is told ---- */

/* Did another file occupy its range shortly before the loss? */
static bool changes_hands(const struct process *p, const struct mp_map *m,
			  const struct image_entry *img)
{
	for (size_t k = p->maps.n_old; k-- > 0;) {
		const struct mapping *o = &p->maps.old[k];

		if (o->to_ns + RESTLESS_NS <= p->unsure_ns)
			return false; /* in the order they ended */
		if (o->start < m->end && m->start < o->end && !hostmaps_same_file(o->image, img))
			return true;
	}
	return false;
}

/* Since when a mapping is valid: after a loss, one that was there before and comes again keeps its
 * time. */
static uint64_t held_since(const struct process *p, const struct mp_map *m,
			   const struct image_entry *img)
{
	const struct mapping *old =
		p->unsure_ns ? mapset_find(&p->before, m->start, UINT64_MAX - 1) : NULL;

	if (old && old->start == m->start && old->end == m->end && old->offset == m->offset &&
	    hostmaps_same_file(old->image, img) && old->from_ns < m->time_ns &&
	    !changes_hands(p, m, img))
		return old->from_ns;
	return m->time_ns;
}

void hostmaps_on_map(struct hostmaps *hm, struct process *p, const struct mp_map *m)
{
	struct image_entry *img = m->image ? hostmaps_image_told(hm, m->image) : NULL;
	uint64_t since;

	if (!p || (m->image && !img))
		return;
	since = held_since(p, m, img);
	if (!p->known_ns)
		p->known_ns = since;
	if (since > p->changed_ns)
		p->changed_ns = since;
	mapset_put(&p->maps, m->start, m->end, m->offset, img, since, 1);
}

void hostmaps_inherit(struct process *p, const struct process *parent)
{
	if (!parent || p->maps.n_now || !parent->maps.n_now)
		return;
	mapset_copy(&p->maps, &parent->maps, p->pub.from_ns);
	p->known_ns = p->changed_ns = p->pub.from_ns;
}

void hostmaps_unsure(struct hostmaps *hm, uint64_t time_ns)
{
	for (struct process *p = hm->processes; p; p = p->hh.next) {
		if (p->pub.to_ns != UINT64_MAX || p->unsure_ns)
			continue;
		p->unsure_ns = time_ns;
		p->confirmed = false;
		mapset_release(&p->before);
		p->before.now = p->maps.now;
		p->before.n_now = p->maps.n_now;
		p->before.cap_now = p->maps.cap_now;
		p->maps.now = NULL;
		p->maps.n_now = p->maps.cap_now = 0;
	}
}

/* Did it come again unchanged? */
static bool still_held(const struct process *p, const struct mapping *m)
{
	const struct mapping *now = mapset_find(&p->maps, m->start, UINT64_MAX - 1);

	return now && now->from_ns <= m->from_ns;
}

void hostmaps_sure(struct hostmaps *hm, struct process *p)
{
	uint64_t t = p->unsure_ns;

	p->unsure_ns = 0;
	for (size_t i = 0; i < p->before.n_now; i++) {
		struct mapping *m = &p->before.now[i];

		if (still_held(p, m))
			continue;
		if (t > p->changed_ns)
			p->changed_ns = t;
		if (m->from_ns < t) { /* goes into the history at once */
			struct mapset one = {0};

			mapset_put(&one, m->start, m->end, m->offset, m->image, m->from_ns, 0);
			mapset_end(&one, t, 1);
			mem_grow(p->maps.old, p->maps.n_old, p->maps.cap_old);
			p->maps.old[p->maps.n_old++] = one.old[0];
			mapset_release(&one);
		}
	}
	mapset_release(&p->before);
	if (!p->confirmed && p->pub.to_ns > t) {
		hm->ends_told++;
		hostmaps_close_process(hm, p, t, HOSTMAPS_GONE, 0);
	}
}

void hostmaps_maps_release(struct process *p)
{
	mapset_release(&p->maps);
	mapset_release(&p->before);
}

/* ---- look-up by address ---- */

/* Addresses in the kernel's half (vsyscall) have the frame bits set anyway. */
static bool is_high(uint64_t frame)
{
	return frame >> 63;
}

/* After the kernel raised the exec id and before the new program's first instruction, the user side
 * is still the old program's call of exec. */
static const struct process *identity_at(const struct process *p, uint64_t time_ns)
{
	while (p->older && p->older->key.start_ns == p->key.start_ns && time_ns < p->pub.from_ns)
		p = p->older;
	return p;
}

static const struct mapping *mapping_at(const struct process *p, uint64_t addr, uint64_t time_ns)
{
	const struct mapping *m = mapset_find(&p->maps, addr, time_ns);

	if (!m && p->unsure_ns && time_ns < p->unsure_ns)
		m = mapset_find(&p->before, addr, time_ns);
	return m;
}

static void frame_of(struct hostmaps *hm, const struct mapping *m, uint64_t addr,
		     struct hostmaps_frame *out)
{
	struct image_entry *img = m ? m->image : NULL;

	*out = (struct hostmaps_frame){.offset = addr, .address = addr, .mapped = m != NULL};
	if (!img)
		return;
	out->image = &img->pub;
	out->offset = addr - m->start + m->offset;
	hostmaps_image_want(hm, img);
}

void hostmaps_frame(struct hostmaps *hm, struct hostmaps_process *pub, uint64_t addr,
		    uint64_t time_ns, struct hostmaps_frame *out)
{
	const struct process *p = identity_at((struct process *)pub, time_ns);

	frame_of(hm, mapping_at(p, addr, time_ns), addr, out);
}

_Static_assert((int)UNWIND_ROWS_READY == MP_INDEX_READY + 1 &&
		       (int)UNWIND_ROWS_REFUSED == MP_INDEX_REFUSED + 1 && UNWIND_ROWS_PENDING == 1,
	       "states in the same order");

bool hostmaps_where(struct hostmaps *hm, struct hostmaps_process *pub, uint64_t addr,
		    uint64_t time_ns, struct unwind_where *out, uint64_t *pending)
{
	const struct process *p = identity_at((struct process *)pub, time_ns);
	const struct mapping *m = mapping_at(p, addr, time_ns);
	struct image_entry *img = m ? m->image : NULL;
	uint64_t offset, vaddr;

	if (!m)
		return false;
	*out = (struct unwind_where){
		.start = m->start, .end = m->end, .to_file = m->offset - m->start};
	if (!img)
		return true;
	hostmaps_image_want(hm, img);
	out->state = !img->pub.state && img->index ? UNWIND_ROWS_READY :
						     (enum unwind_rows_state)(img->pub.state + 1);
	if (!img->pub.state && !img->index)
		*pending = img->key;
	offset = addr + out->to_file;
	if (img->index && img->rows.elements && image_offset_to_vaddr(img->index, offset, &vaddr)) {
		out->rows = img->rows;
		out->to_vaddr = vaddr - addr;
	} else if (img->index) {
		out->state = UNWIND_ROWS_REFUSED;
	}
	return true;
}

void hostmaps_mappings(struct hostmaps *hm, const struct hostmaps_process *pub,
		       void (*each)(void *ctx, uint64_t start, uint64_t end,
				    struct hostmaps_image *image),
		       void *ctx)
{
	const struct process *p = (const struct process *)pub;

	for (size_t i = 0; i < p->maps.n_now; i++) {
		struct image_entry *img = p->maps.now[i].image;

		if (img)
			hostmaps_image_want(hm, img);
		each(ctx, p->maps.now[i].start, p->maps.now[i].end, img ? &img->pub : NULL);
	}
}

void hostmaps_mappings_wanted(struct hostmaps *hm, const struct hostmaps_process *pub,
			      bool (*wanted)(void *ctx, const struct hostmaps_image *image,
					     uint64_t bytes),
			      void (*each)(void *ctx, uint64_t start, uint64_t end,
					   struct hostmaps_image *image),
			      void *ctx)
{
	const struct process *p = (const struct process *)pub;

	for (size_t i = 0; i < p->maps.n_now; i++) {
		const struct mapping *m = &p->maps.now[i];
		struct image_entry *img = m->image;

		if (!img || !wanted(ctx, &img->pub, m->end - m->start))
			continue;
		hostmaps_image_want(hm, img);
		each(ctx, m->start, m->end, &img->pub);
	}
}

struct hostmaps_image *hostmaps_exe(struct hostmaps *hm, const struct hostmaps_process *pub,
				    uint64_t *start, uint64_t *end, uint64_t *offset)
{
	const struct process *p = (const struct process *)pub;

	for (size_t i = 0; i < p->maps.n_now; i++) {
		const struct mapping *m = &p->maps.now[i];
		struct image_entry *img = m->image;

		if (!img || !img->pub.path || strcmp(img->pub.path, pub->exe))
			continue;
		hostmaps_image_want(hm, img);
		*start = m->start;
		*end = m->end;
		*offset = m->offset;
		return &img->pub;
	}
	return NULL;
}

/* ---- frames of tables ---- */

/* Did anything change in (from, to]? */
static bool changed(const struct process *p, uint64_t from, uint64_t to)
{
	if (p->unsure_ns && to >= p->unsure_ns)
		return true;
	if (p->changed_ns <= from)
		return false;
	for (size_t i = 0; i < p->maps.n_now; i++)
		if (p->maps.now[i].from_ns > from && p->maps.now[i].from_ns <= to)
			return true;
	for (size_t i = p->maps.n_old; i-- > 0;) {
		const struct mapping *m = &p->maps.old[i];

		if (m->to_ns <= from)
			break; /* in the order they ended */
		if (m->to_ns <= to || (m->from_ns > from && m->from_ns <= to))
			return true;
	}
	return false;
}

/* The process from whose mappings the tables as of *tables_ns were made; moves *tables_ns to the
 * time from which those are known. */
static const struct process *tables_process(const struct hostmaps *hm, const struct process *p,
					    uint64_t *tables_ns)
{
	for (int i = 0; i < PARENTS_MAX && *tables_ns < p->known_ns; i++) {
		const struct newest *n = p->older && p->older->key.start_ns == p->key.start_ns ?
						 NULL :
						 hostmaps_newest(hm, p->pub.ppid);
		const struct process *parent = n ? n->p : NULL;

		while (parent && parent->known_ns >= p->known_ns)
			parent = parent->older;
		if (!parent || parent == p || p->known_ns != p->pub.from_ns)
			break;
		p = parent;
	}
	if (*tables_ns < p->known_ns)
		*tables_ns = p->known_ns;
	return p;
}

struct search {
	const struct process *p; /* the frame's process */
	const struct image_entry *img;
	uint64_t offset, back; /* the call is at offset - back */
	uint64_t tables_ns, time_ns;
	size_t n; /* addresses found */
	uint64_t addr;
	const struct mapping *now; /* the mapping that holds it at time_ns */
	bool stale, torn;          /* stale: the last one; torn: one is stale and another is not */
};

static void candidate(struct search *s, const struct mapping *m)
{
	uint64_t at = s->offset - s->back;
	const struct image_entry *img;
	bool stale;

	if (!m->image || m->from_ns > s->tables_ns || m->to_ns <= s->tables_ns || at < m->offset ||
	    at - m->offset >= m->end - m->start || !hostmaps_same_file(m->image, s->img))
		return;
	s->addr = m->start + (at - m->offset) + s->back;
	s->now = mapping_at(s->p, s->addr - s->back, s->time_ns);
	img = s->now ? s->now->image : NULL;
	stale = !img || !hostmaps_same_file(img, s->img) ||
		s->addr - s->now->start + s->now->offset != s->offset;
	s->torn |= s->n && stale != s->stale;
	s->stale = stale;
	s->n++;
}

static void search_set(struct search *s, const struct mapping *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		candidate(s, &m[i]);
}

/* Finds the address of a frame of tables; n = 0: none. */
static void turn_back(const struct process *owner, struct search *s)
{
	search_set(s, owner->maps.now, owner->maps.n_now);
	search_set(s, owner->maps.old, owner->maps.n_old);
	if (owner->unsure_ns && s->tables_ns < owner->unsure_ns && !s->n)
		search_set(s, owner->before.now, owner->before.n_now);
}

static void owner_by_image(struct hostmaps *hm, struct process *p, uint64_t frame,
			   uint64_t tables_ns, uint64_t time_ns, struct hostmaps_frame *out)
{
	struct image_entry *img = hostmaps_image_of(hm, FRAME_IMAGE_OF(frame), tables_ns);
	struct search s = {.p = p,
			   .img = img,
			   .offset = frame & FRAME_OFFSET_MASK,
			   .time_ns = time_ns,
			   .back = frame & FRAME_EXACT ? 0 : (frame & FRAME_OFFSET_MASK) > 0};
	const struct process *owner;

	*out = (struct hostmaps_frame){.stale = true};
	if (!img)
		return;
	owner = tables_process(hm, p, &tables_ns);
	s.tables_ns = tables_ns;
	if (owner == p && img->pub.kind != MP_IMAGE_OTHER && !changed(p, tables_ns, time_ns)) {
		*out = (struct hostmaps_frame){
			.image = &img->pub, .mapped = true, .offset = s.offset};
		hostmaps_image_want(hm, img);
		return;
	}
	turn_back(owner, &s);
	if (!s.n || s.torn)
		return;
	frame_of(hm, s.now, s.addr - s.back, out);
	out->offset += s.back;
	out->address += s.back;
	out->stale = s.stale;
}

static void owner_by_address(struct hostmaps *hm, struct process *p, uint64_t frame,
			     uint64_t tables_ns, uint64_t time_ns, struct hostmaps_frame *out)
{
	uint64_t addr = is_high(frame) ? frame : FRAME_ADDRESS(frame),
		 back = frame & FRAME_EXACT ? 0 : addr > 0;
	const struct mapping *now = mapping_at(p, addr - back, time_ns), *then;
	const struct process *owner;

	frame_of(hm, now, addr - back, out);
	out->offset += back;
	out->address = addr;
	if (!tables_ns)
		return;
	owner = tables_process(hm, p, &tables_ns);
	if (owner == p && !changed(p, tables_ns, time_ns))
		return;
	then = mapping_at(owner, addr - back, tables_ns);
	out->stale = !now != !then || (now && then && !hostmaps_same_file(now->image, then->image));
}

/* Has sonde-maps reported all up to time_ns, or nothing changed for long? */
static bool is_reported(const struct hostmaps *hm, const struct process *p, uint64_t time_ns)
{
	return time_ns <= hm->watermark || p->changed_ns + RESTLESS_NS <= hm->watermark;
}

bool hostmaps_frames_stand(const struct hostmaps *hm, const struct hostmaps_process *pub,
			   uint64_t tables_ns, uint64_t time_ns)
{
	const struct process *p = (const struct process *)pub;

	return is_reported(hm, p, time_ns) && tables_ns >= p->known_ns &&
	       !changed(p, tables_ns, time_ns) &&
	       hm->generation_ns[hm->generation % GENERATIONS] <= tables_ns;
}

uint64_t hostmaps_generation(const struct hostmaps *hm)
{
	return hm->generation;
}

void hostmaps_frame_owner(struct hostmaps *hm, struct hostmaps_process *pub, uint64_t frame,
			  uint64_t tables_ns, uint64_t time_ns, struct hostmaps_frame *out)
{
	struct process *p = (struct process *)pub;

	if (!is_reported(hm, p, time_ns))
		*out = (struct hostmaps_frame){.stale = true};
	else if (frame & FRAME_IMAGE && !is_high(frame))
		owner_by_image(hm, p, frame, tables_ns, time_ns, out);
	else
		owner_by_address(hm, (struct process *)identity_at(p, time_ns), frame, tables_ns,
				 time_ns, out);
}
