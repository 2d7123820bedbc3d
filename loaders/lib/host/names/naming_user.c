/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_user: user addresses, by the mapping of their time (hostmaps), then by image index, or by
 * the names that the runtime writes for its code (jitnames).
 *
 * Images and rows: an image whose index is still being made has a temporary row (its key says
 * "pending-..."), because only the index shows whether two files with the same path and build-id
 * are the same; frames that wait belong to that row, so that no file can lend its names to another.
 * Once the index is ready, frames go to the row with the real key. If the capture ends before that,
 * `sonde symbolize` names them: by the build-id, or, for a file without one, by the last part of
 * the key (cache_file_id), which identifies the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/jitnames.h"
#include "loaders/lib/host/names/jitreader.h"
#include "loaders/lib/host/maps/mapsproto.h"
#include "loaders/lib/host/names/private.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/runtimes/beam/beamname.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define VSYSCALL         0xffffffffff600000ull
#define ANON_BLOCK       0x1fffffull /* [anon] offsets are within 2 MiB */
#define PAGE_MASK        0xfffull
#define JIT_PAUSE_NS     NSEC_PER_SEC
#define JIT_FIRST_NS     (NSEC_PER_SEC / 8) /* a runtime may have been asked just now */
#define JIT_PAUSE_MAX_NS (30 * NSEC_PER_SEC)
#define JIT_WAIT_MS      100 /* of this thread, for names that are needed now */

static void frames_forget(struct naming *n)
{
	idmap_clear(&n->frames);
	idmap_clear(&n->standing[0]);
	idmap_clear(&n->standing[1]);
}

void naming_user_forget(struct naming *n)
{
	frames_forget(n);
	n->n_pending = n->used_pending = n->n_free = n->n_lineless = 0;
	n->image_anon = n->image_jit = n->image_unknown = n->image_vsyscall = 0;
}

void naming_user_init(struct naming *n)
{
	for (size_t i = 0; i < JIT_MAPS; i++)
		n->jit[i].job = JITJOB_NONE;
	n->jitreader = n->o.generated ? jitreader_open() : NULL;
}

static void jit_drop(struct jit_map *j)
{
	jitjob_drop(&j->job);
	perfmap_free(j->map);
	*j = (struct jit_map){.job = JITJOB_NONE};
}

void naming_user_release(struct naming *n)
{
	idmap_release(&n->frames);
	idmap_release(&n->standing[0]);
	idmap_release(&n->standing[1]);
	free(n->pending);
	free(n->free_slots);
	free(n->lineless);
	for (size_t i = 0; i < JIT_MAPS; i++)
		jit_drop(&n->jit[i]);
	jitreader_close(n->jitreader);
}

/* ---- images ---- */

static uint32_t image_store(struct naming *n, const struct hostmaps_image *img)
{
	char key[IMAGE_KEY_MAX];
	struct store_image i = {.kind = img->kind == MP_IMAGE_VDSO ? STORE_IMAGE_VDSO :
								     STORE_IMAGE_ELF,
				.name = img->name[0] ? img->name : "[file]",
				.path = img->path,
				.build_id = img->build_id,
				.key = img->key};

	if (!img->state) {
		snprintf(key, sizeof(key), "pending-%" PRIu64 "-%u-%016" PRIx64, img->generation,
			 img->id, img->file);
		i.key = key;
	}
	return store_image(n->w, &i);
}

static uint32_t image_id(struct naming *n, struct hostmaps_image *img)
{
	struct image_note *note = img->user;

	if (!note)
		note = img->user = mem_alloc(sizeof(*note));
	if (!note->store_image || note->epoch != n->epoch || note->state != img->state) {
		note->store_image = image_store(n, img);
		if (note->epoch != n->epoch)
			note->pending_image = 0;
		if (!img->state)
			note->pending_image = note->store_image;
		note->epoch = n->epoch;
		note->state = img->state;
	}
	return note->store_image;
}

static uint32_t named_image(struct naming *n, uint32_t *id, const char *name,
			    enum store_image_kind kind)
{
	if (!*id)
		*id = store_image(
			n->w,
			&(struct store_image){
				.kind = kind, .name = name, .path = "", .build_id = "", .key = ""});
	return *id;
}

/* ---- places ---- */

static struct store_frame frame_exact(uint32_t image, uint64_t offset, enum look look)
{
	return (struct store_frame){.image = image,
				    .offset = offset,
				    .leaf = look_is_leaf(look),
				    .exact = !look_is_back(look)};
}

static void lineless_add(struct naming *n, const struct hostmaps_image *img, uint32_t image,
			 uint64_t offset, enum look look, uint32_t frame)
{
	if (n->n_lineless >= n->o.max_pending)
		return; /* `sonde symbolize` finds it */
	mem_grow(n->lineless, n->n_lineless, n->cap_lineless);
	n->lineless[n->n_lineless++] = (struct pending){.generation = img->generation,
							.image = img->id,
							.frame = frame,
							.store_image = image,
							.offset = offset,
							.look = look};
}

/* The image's lines have come: add them to frames that were named without. */
static void lineless_fill(struct naming *n, const struct hostmaps_image *img)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->n_lineless; i++) {
		const struct pending *p = &n->lineless[i];
		struct store_frame f = frame_exact(p->store_image, p->offset, p->look);

		if (p->image != img->id || p->generation != img->generation)
			n->lineless[kept++] = *p;
		else if (img->index && naming_location(n, img->index, p->look, false, &f))
			store_frame_name(n->w, p->frame, f.function, f.line, f.outer);
	}
	n->n_lineless = kept;
}

static struct frame_name frame_of_index(struct naming *n, const struct hostmaps_image *img,
					uint32_t image, uint64_t offset, enum look look)
{
	const struct image *index = img->index;
	struct store_frame f = frame_exact(image, offset, look);
	bool later = image_ident(index)
			     ->lines_later; /* a leaf that is not folded can still get its line */
	bool named = naming_location(n, index, look, !later, &f);
	struct frame_name a = {.frame = store_frame(n->w, &f),
			       .why = named ? WHY_NAMED : WHY_SYMBOL,
			       .slot = SLOT_NONE};

	if (later && named)
		lineless_add(n, img, image, offset, look, a.frame);
	return a;
}

/* ---- waiting for an index ---- */

static uint32_t slot_take(struct naming *n)
{
	if (n->n_free)
		return n->free_slots[--n->n_free];
	if (n->n_pending >= n->o.max_pending)
		return SLOT_NONE;
	mem_grow(n->pending, n->n_pending, n->cap_pending);
	return (uint32_t)n->n_pending++;
}

static void slot_give(struct naming *n, uint32_t slot)
{
	n->pending[slot].used = false;
	n->used_pending--;
	mem_grow(n->free_slots, n->n_free, n->cap_free);
	n->free_slots[n->n_free++] = slot;
}

static struct frame_name frame_pending(struct naming *n, const struct hostmaps_image *img,
				       uint32_t image, uint64_t offset, enum look look)
{
	struct store_frame f = frame_exact(image, offset, look);
	struct frame_name a = {
		.frame = store_frame(n->w, &f), .why = WHY_PENDING, .slot = slot_take(n)};

	if (a.slot == SLOT_NONE)
		return a;
	n->pending[a.slot] = (struct pending){.generation = img->generation,
					      .image = img->id,
					      .store_image = image,
					      .frame = a.frame,
					      .offset = offset,
					      .look = look,
					      .used = true};
	n->used_pending++;
	return a;
}

/* Count the uses of this frame under its final reason. */
static void rebook(struct naming *n, const struct pending *p, enum why why)
{
	struct naming_stat *s = &n->stat;

	s->unnamed_pending -= p->uses;
	if (why == WHY_NAMED) {
		s->named += p->uses;
		s->leaves_named += p->leaf_uses;
	} else if (why == WHY_SYMBOL) {
		s->unnamed_symbol += p->uses;
	} else {
		s->unnamed_refused += p->uses;
	}
}

static enum why name_pending(struct naming *n, const struct pending *p,
			     const struct hostmaps_image *img)
{
	struct store_frame f = frame_exact(p->store_image, p->offset, p->look);

	if (!img->index)
		return WHY_REFUSED;
	if (!naming_location(n, img->index, p->look, false, &f))
		return WHY_SYMBOL;
	store_frame_name(n->w, p->frame, f.function, f.line, f.outer);
	if (image_ident(img->index)->lines_later)
		lineless_add(n, img, p->store_image, p->offset, p->look, p->frame);
	return WHY_NAMED;
}

void naming_user_ready(struct naming *n, struct hostmaps_image *img)
{
	const struct image_note *note = img->user;

	if (img->told > 1) {
		frames_forget(n); /* more is known of its addresses: look them up again */
		lineless_fill(n, img);
	}
	if (img->state && !img->index)
		log_info("no names for %s: %s", img->path, img->reason);
	else if (note && note->pending_image && note->epoch == n->epoch && *img->build_id)
		store_image_build_id(n->w, note->pending_image, img->build_id);
	if (!img->state)
		return;
	for (uint32_t i = 0; i < n->n_pending && n->used_pending; i++) {
		struct pending *p = &n->pending[i];

		if (!p->used || p->image != img->id || p->generation != img->generation)
			continue;
		rebook(n, p, name_pending(n, p, img));
		slot_give(n, i);
	}
}

/* ---- code without a file ---- */

static bool jit_same(const struct jit_map *j, const struct hostmaps_process *p)
{
	return j->tgid == p->tgid && j->start_ns == p->start_ns && j->exec_id == p->exec_id;
}

/* The process's entry; else an empty one, else the one unused for longest. */
static struct jit_map *jit_entry(struct naming *n, const struct hostmaps_process *p, int64_t now)
{
	struct jit_map *best = &n->jit[0];

	for (size_t i = 0; i < JIT_MAPS; i++) {
		struct jit_map *j = &n->jit[i];

		if (jit_same(j, p))
			return j;
		if (j->used_ns < best->used_ns)
			best = j;
	}
	jit_drop(best);
	*best = (struct jit_map){.tgid = p->tgid,
				 .exec_id = p->exec_id,
				 .start_ns = p->start_ns,
				 .job = JITJOB_NONE,
				 .used_ns = now,
				 .pause_ns = JIT_FIRST_NS};
	return best;
}

static size_t jit_bytes(const struct naming *n)
{
	size_t sum = 0;

	for (size_t i = 0; i < JIT_MAPS; i++)
		sum += n->jit[i].map ? perfmap_bytes(n->jit[i].map) : 0;
	return sum;
}

/* Is the process with this pid still the same? Its start is known in clock ticks. */
static bool still_there(const struct hostmaps_process *p)
{
	uint64_t tick = proc_ticks_ns(1);
	struct proc_stat st;

	return !proc_read_stat(p->tgid, &st) &&
	       proc_ticks_ns(st.start_ticks) / tick == p->start_ns / tick;
}

/* Its names are missing, and who runs the program can mend that. */
static bool jit_refused(int rc)
{
	return rc && rc != -ENOENT && rc != -EALREADY && rc != -EINPROGRESS && rc != -ESRCH &&
	       rc != -EBUSY && rc != -EACCES;
}

/* In the store, for `sonde status`: again in each segment. */
static void jit_note(struct naming *n, struct jit_map *j)
{
	struct hostmaps_process *p = hostmaps_process(n->hm, j->tgid, j->start_ns, j->exec_id);
	uint64_t now = store_gauge_epoch(n->w) + 1;

	if (!n->run || !p || j->noted_at == now || (!j->noted_at && !*j->why))
		return;
	store_process_note(n->w, n->run, naming_row(n, p), "unnamed", j->why);
	j->noted_at = now;
}

static void jit_why(struct naming *n, struct jit_map *j, const char *why)
{
	if (strcmp(j->why, why)) {
		snprintf(j->why, sizeof(j->why), "%s", why);
		if (j->noted_at)
			j->noted_at = 1; /* an older one than any */
	}
	jit_note(n, j);
}

static void jit_tell(struct naming *n, struct jit_map *j, const char *reason, const char *fix)
{
	char why[256];

	n->stat.perfmap_refused++;
	snprintf(why, sizeof(why),
		 "its perf map or jitdump is refused: %s; 0 of its entries are used. %s", reason,
		 fix);
	jit_why(n, j, why);
	if (!j->told)
		log_warn(
			"process %u: its generated code has no names: its perf map or jitdump is not read: %s",
			j->tgid, reason);
	j->told = true;
}

static void jit_taken(struct naming *n, struct jit_map *j, const struct jitnames_told *told)
{
	char why[256] = "";

	if (told->cut)
		snprintf(why, sizeof(why),
			 "its perf map is cut: %llu entries of its first %u MiB are used. %s",
			 (unsigned long long)told->names, PERFMAP_FILE_MAX >> 20,
			 jitnames_fix(-E2BIG));
	jit_why(n, j, why);
}

/* The largest goes first, so that one that is made to be large costs its own names. */
static void jit_make_room(struct naming *n)
{
	while (jit_bytes(n) > JIT_BYTES) {
		struct jit_map *largest = NULL;

		for (size_t i = 0; i < JIT_MAPS; i++)
			if (n->jit[i].map && (!largest || perfmap_bytes(n->jit[i].map) >
								  perfmap_bytes(largest->map)))
				largest = &n->jit[i];
		jit_tell(n, largest, "all of them together are too large", jitnames_fix(-E2BIG));
		perfmap_free(largest->map);
		largest->map = NULL;
		largest->pause_ns = JIT_PAUSE_MAX_NS;
		largest->next_read_ns = clock_boot_ns() + JIT_PAUSE_MAX_NS;
	}
}

/* Has its files read. 0, -EALREADY, or why that is not possible. */
static int jit_begin(struct naming *n, struct jit_map *j, const struct hostmaps_process *p)
{
	struct jitnames_files files;
	int rc = jitnames_open(p, &j->stamp, &files);

	if (rc)
		return rc;
	rc = still_there(p) ? jitreader_ask(n->jitreader, &files, &j->job) : -ESRCH;
	if (!rc)
		j->reading = files.stamp;
	jitnames_close(&files);
	return rc;
}

/* What was read, if it was: else -EINPROGRESS. */
static int jit_take(struct naming *n, struct jit_map *j, int wait_ms, uint64_t *cpu_ns)
{
	struct jitnames_told told;
	struct perfmap *fresh = NULL;
	int rc = jitjob_take(&j->job, wait_ms, &fresh, &told);

	n->stat.reading_cpu_ns += told.cpu_ns;
	*cpu_ns = told.cpu_ns;
	if (rc == -EINPROGRESS)
		return rc;
	j->stamp = j->reading;
	if (!rc || rc == -E2BIG) { /* what it had is older than what it has now */
		perfmap_free(j->map);
		j->map = fresh;
	}
	if (!rc) {
		jit_taken(n, j, &told);
		jit_make_room(n);
	}
	return rc;
}

/* Pauses in proportion to the cost of reading, for this thread and for the process that reads, so
 * that large maps that keep growing use less than 5 % of either. */
static void jit_pause(struct jit_map *j, int rc, int64_t before, uint64_t cpu_ns)
{
	int64_t took = clock_boot_ns() - before;
	const uint64_t most = JIT_PAUSE_MAX_NS / 20;

	if (cpu_ns > (uint64_t)took)
		took = (int64_t)(cpu_ns < most ? cpu_ns : most);
	took *= 20;
	j->pause_ns =
		jit_refused(rc) || rc == -ENOENT || rc == -ESRCH ? j->pause_ns * 2 : JIT_PAUSE_NS;
	if (j->pause_ns < took)
		j->pause_ns = took;
	if (j->pause_ns > JIT_PAUSE_MAX_NS)
		j->pause_ns = JIT_PAUSE_MAX_NS;
	j->next_read_ns = before + j->pause_ns;
}

/* "php8.2", "libphp.so", "ruby", "libruby-3.1.so.3.1.2". */
static bool makes_code(void *ctx, const struct hostmaps_image *image, uint64_t bytes)
{
	const char *name = image->name + (strncmp(image->name, "lib", 3) ? 0 : 3);

	(void)ctx;
	(void)bytes;
	return !strncmp(name, "php", 3) || !strncmp(name, "ruby", 4);
}

static void nothing(void *ctx, uint64_t start, uint64_t end, struct hostmaps_image *image)
{
	(void)ctx;
	(void)start;
	(void)end;
	(void)image;
}

/* No file names this code. Where PHP or Ruby made it, the walk of the script's frames
 * begins there, once the interpreter's own file is known. All samples may be in that code, and none
 * in the file: then nothing else asks for its index. */
static void jit_explain(struct naming *n, const struct hostmaps_process *p)
{
	hostmaps_want_names(n->hm, p);
	hostmaps_mappings_wanted(n->hm, p, makes_code, nothing, NULL);
}

static void jit_read(struct naming *n, struct jit_map *j, const struct hostmaps_process *p)
{
	int64_t before = clock_boot_ns();
	uint64_t cpu_ns = 0;
	int rc = j->job.read.said < 0 ? jit_begin(n, j, p) : 0;

	if (!rc)
		rc = jit_take(n, j, JIT_WAIT_MS, &cpu_ns);
	if (rc == -ENOENT)
		jit_explain(n, p);
	if (jit_refused(rc))
		jit_tell(n, j, jitnames_reason(rc), jitnames_fix(rc));
	jit_pause(j, rc, before, cpu_ns);
}

static bool jit_find(struct naming *n, const struct hostmaps_process *p, uint64_t addr,
		     struct perfmap_entry *e)
{
	int64_t now = clock_boot_ns();
	struct jit_map *j = n->o.generated ? jit_entry(n, p, now) : NULL;

	if (!j)
		return false;
	j->used_ns = now;
	if (j->map && perfmap_find(j->map, addr, e))
		return true;
	if (now < j->next_read_ns)
		return false;
	jit_read(n, j, p);
	return j->map && perfmap_find(j->map, addr, e);
}

/* What took longer than the sample that needed it could wait. */
static void jit_late(struct naming *n, struct jit_map *j)
{
	int64_t now = clock_boot_ns();
	uint64_t cpu_ns;
	int rc = jit_take(n, j, 0, &cpu_ns);

	if (rc == -EINPROGRESS)
		return;
	if (jit_refused(rc))
		jit_tell(n, j, jitnames_reason(rc), jitnames_fix(rc));
	jit_pause(j, rc, now, cpu_ns);
}

/* Drop maps of processes that are gone. */
void naming_user_tick(struct naming *n)
{
	for (size_t i = 0; i < JIT_MAPS; i++) {
		struct jit_map *j = &n->jit[i];

		if (!j->used_ns)
			continue;
		if (!hostmaps_process(n->hm, j->tgid, j->start_ns, j->exec_id)) {
			jit_drop(j);
			continue;
		}
		if (j->job.read.said >= 0)
			jit_late(n, j);
		if (*j->why)
			jit_note(n, j);
	}
}

static struct frame_name frame_jit(struct naming *n, const struct perfmap_entry *e, uint64_t addr,
				   enum look look)
{
	uint32_t image = named_image(n, &n->image_jit, "[jit]", STORE_IMAGE_JIT);
	cleanup_free char *erlang = beamname_of_perf(e->name);
	struct store_function fn = {
		.name = erlang ? erlang : e->name, .image = image, .file = e->file ? e->file : ""};
	struct store_frame f = {.image = image,
				.leaf = look_is_leaf(look),
				.function = store_function(n->w, &fn),
				.line = e->line};

	f.offset = f.leaf ? 0 : addr - e->start;
	return (struct frame_name){.frame = store_frame(n->w, &f),
				   .slot = SLOT_NONE,
				   .image = image,
				   .why = f.function ? WHY_NAMED : WHY_ANON};
}

static struct frame_name frame_anon(struct naming *n, struct hostmaps_process *p, uint64_t addr,
				    enum look look)
{
	struct perfmap_entry e;
	struct store_frame f = {.leaf = look_is_leaf(look)};

	if (jit_find(n, p, look_is_back(look) ? addr - 1 : addr, &e))
		return frame_jit(n, &e, addr, look);
	if ((addr & ~PAGE_MASK) == VSYSCALL) {
		f.image = named_image(n, &n->image_vsyscall, "[vsyscall]", STORE_IMAGE_VDSO);
		f.offset = addr & PAGE_MASK;
	} else {
		f.image = named_image(n, &n->image_anon, "[anon]", STORE_IMAGE_UNKNOWN);
		f.offset = addr & (f.leaf ? ANON_BLOCK & ~PAGE_MASK : ANON_BLOCK);
	}
	return (struct frame_name){.frame = store_frame(n->w, &f),
				   .why = WHY_ANON,
				   .slot = SLOT_NONE,
				   .image = f.image};
}

struct frame_name naming_unknown(struct naming *n)
{
	struct store_frame f = {
		.image = named_image(n, &n->image_unknown, "[unknown]", STORE_IMAGE_UNKNOWN)};

	return (struct frame_name){.frame = store_frame(n->w, &f),
				   .why = WHY_UNMAPPED,
				   .slot = SLOT_NONE,
				   .image = f.image};
}

/* ---- putting it together ---- */

/* Unique for up to a million images and files up to 1 TiB; larger values are not cached. */
static bool cache_key(uint32_t image, uint64_t offset, enum look look, uint64_t *key)
{
	_Static_assert(LOOK_N <= 8, "three bits");
	if (image >> 20 || offset >> 40)
		return false;
	*key = (uint64_t)image << 43 | offset << 3 | (uint64_t)look;
	return true;
}

static struct frame_name frame_file(struct naming *n, struct hostmaps_image *img, uint64_t offset,
				    enum look look)
{
	uint32_t image = image_id(n, img);
	uint64_t key = 0, cached;
	bool cacheable = cache_key(image, offset, look, &key);
	struct frame_name a;

	if (cacheable && idmap_get(&n->frames, key, &cached)) {
		a = frame_name_unpack(cached);
		a.image = image;
		return a;
	}
	if (!img->state) {
		a = frame_pending(n, img, image, offset, look);
		cacheable &= a.slot != SLOT_NONE;
	} else if (img->index) {
		a = frame_of_index(n, img, image, offset, look);
	} else {
		struct store_frame f = frame_exact(image, offset, look);

		a = (struct frame_name){
			.frame = store_frame(n->w, &f), .why = WHY_REFUSED, .slot = SLOT_NONE};
	}
	if (n->frames.n >= n->o.max_cached)
		idmap_clear(&n->frames);
	if (cacheable)
		idmap_set(&n->frames, key, frame_name_pack(a));
	a.image = image;
	return a;
}

bool naming_standing(struct naming *n, uint64_t frame, bool leaf, struct frame_name *out)
{
	uint64_t generation = hostmaps_generation(n->hm), cached;

	if (n->standing_generation != generation) {
		n->standing_generation = generation;
		idmap_clear(&n->standing[0]);
		idmap_clear(&n->standing[1]);
	}
	if (!idmap_get(&n->standing[leaf], frame, &cached))
		return false;
	*out = frame_name_unpack(cached);
	out->image = out->slot;
	out->slot = SLOT_NONE;
	return true;
}

void naming_standing_add(struct naming *n, uint64_t frame, bool leaf,
			 const struct hostmaps_frame *at, struct frame_name a)
{
	struct idmap *known = &n->standing[leaf];

	if (!at->image || !at->image->index || !at->image->state || at->stale ||
	    at->image->kind == MP_IMAGE_OTHER || at->offset != (frame & FRAME_OFFSET_MASK) ||
	    (a.why != WHY_NAMED && a.why != WHY_SYMBOL) || a.image >= SLOT_NONE)
		return;
	a.slot = a.image; /* no slot of a pending one is needed */
	if (known->n >= n->o.max_cached)
		idmap_clear(known);
	idmap_set(known, frame, frame_name_pack(a));
}

struct frame_name naming_user(struct naming *n, struct hostmaps_process *p,
			      const struct hostmaps_frame *at, enum look look)
{
	if (!p || !at->mapped)
		return naming_unknown(n);
	if (!at->image || (at->image->kind == MP_IMAGE_OTHER && !at->image->index))
		return frame_anon(n, p, at->address, look);
	return frame_file(n, at->image, at->offset, look);
}
