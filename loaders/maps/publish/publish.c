/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/publish.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "loaders/maps/publish/goroutine_offsets.h"
#include "loaders/maps/publish/private.h"
#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/world/world.h"
#include "probes/runtimes/runtime.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define ENTRIES_SWEEP_NS (10 * NSEC_PER_SEC)
#define CHURN_PART       16

uint32_t publish_generation(const struct tablemaps *maps)
{
	return maps->state->generation + 1;
}

struct publish *publish_new(struct tablemaps *maps, struct world *w)
{
	struct publish *pub = mem_alloc(sizeof(*pub));

	pub->maps = maps;
	pub->world = w;
	pub->words = mem_array(slices_words(TABLES_SLICE_MAX), sizeof(*pub->words));
	slices_init(&pub->slices, maps->mappings, maps->n_mappings, TABLES_GRACE_NS);
	slots_init(&pub->slots, maps->images, TABLES_GRACE_NS);
	rowsets_init(&pub->rowsets, maps, TABLES_GRACE_NS);
	entries_init(&pub->entries, maps->fd[MP_TABLES_PROCESSES], &pub->slices);
	maps->state->generation = publish_generation(maps);
	w->last_image = maps->state->last_image;
	if (maps->taken_over)
		publish_take_over(pub);
	return pub;
}

void publish_use_indexer(struct publish *pub, struct indexer *ix)
{
	if (pub)
		pub->indexer = ix;
}

void publish_free(struct publish *pub)
{
	if (!pub)
		return;
	pub->maps->state->heartbeat_ns = 0;
	publish_let_go(pub, 0);
	entries_release(&pub->entries, (uint64_t)clock_boot_ns());
	slices_release(&pub->slices);
	publish_images_release(pub);
	rowsets_release(&pub->rowsets);
	slots_release(&pub->slots);
	free(pub->words);
	free(pub);
}

/* ---- processes ---- */

static const char *path_of(const struct mapping *m)
{
	const struct mimage *img = m->image;

	return img && img->path ? img->path : "";
}

/* A file of that name is HotSpot or BEAM, which generate code; the walker of its frames checks what
 * it really is. */
static bool is_own_code(const struct mapping *m)
{
	static const char *const names[] = {"/libjvm.so", "/beam.smp"};
	const char *path = path_of(m);
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (n >= strlen(names[i]) && !strcmp(path + n - strlen(names[i]), names[i]))
			return true;
	return false;
}

/* asmjit, which BEAM uses, maps memory for code by a file without a name: it is no file to look up.
 */
static bool is_memory(const struct mapping *m)
{
	return !strcmp(path_of(m), "/memfd:vmem");
}

static void put_mapping(uint64_t *words, uint32_t n, uint32_t i, const struct mapping *m)
{
	const struct mimage *img = m->image;
	const struct pimage *pi = img ? img->published : NULL;
	uint64_t *w = words + n + (size_t)i * MAPPING_WORDS;

	words[i] = m->start;
	w[0] = m->end;
	w[1] = m->offset - m->start;
	w[2] = 0;
	w[3] = pi && !is_memory(m) ? pi->slot : 0;
	if (pi && pi->n_segments && !publish_row_distance(pi, m, &w[2]))
		w[3] = 0; /* not an executable part of the file: no rows */
}

/* Does its mapping show an interpreter that may make machine code? */
static bool makes_code(const struct publish *pub, const struct mapping *m)
{
	const struct mimage *img = m->image;
	const struct pimage *pi = img ? img->published : NULL;
	const uint32_t kind = pi && pi->runtime ? pub->maps->runtimes[pi->runtime].kind : 0;
	uint64_t distance;

	return (kind == RUNTIME_PHP || kind == RUNTIME_RUBY) && pi->n_segments &&
	       publish_row_distance(pi, m, &distance);
}

static uint32_t flags_of(const struct publish *pub, const struct proc *p)
{
	uint32_t flags = 0;

	for (size_t i = 0; i < p->maps.n_now && i < TABLES_SLICE_MAX; i++)
		if (makes_code(pub, &p->maps.now[i]))
			return TABLES_SCRIPTS_MAKE(i);
	for (size_t i = 0; i < p->maps.n_now; i++) {
		const struct mimage *img = p->maps.now[i].image;

		if (is_own_code(&p->maps.now[i]))
			flags |= TABLES_PROCESS_OWN_CODE;
		else if (img && img->published)
			flags = goroutine_offsets_join(flags, img->published->process_flags);
	}
	return flags;
}

static struct slice *slice_of(struct publish *pub, const struct proc *p)
{
	uint32_t n = p->maps.n_now < TABLES_SLICE_MAX ? (uint32_t)p->maps.n_now : TABLES_SLICE_MAX;
	struct slice *slice;

	for (uint32_t i = 0; i < n; i++)
		put_mapping(pub->words, n, i, &p->maps.now[i]);
	slice = slices_get(&pub->slices, pub->words, n);
	pub->refused += !slice;
	if (!slice && !pub->told_slices) {
		log_warn(
			"no room for the mappings of more processes: until there is, their stacks are found by frame pointers alone");
		pub->told_slices = true;
	}
	return slice;
}

/* Freed room can be used after the grace. So a process may take one of CHURN_PART parts of the
 * room in that time: one that has many mappings and changes them without end leaves room for all
 * others. */
static void wait_after(const struct publish *pub, struct proc *p, uint64_t now_ns)
{
	p->due_exec = p->exec_id;
	p->due_ns = now_ns + TABLES_GRACE_NS * CHURN_PART * slices_words(p->slice->count) /
				     pub->maps->n_mappings;
}

static void try_again(struct publish *pub, struct proc *p, uint64_t now_ns)
{
	p->due_exec = p->exec_id;
	p->due_ns = now_ns + TABLES_GRACE_NS;
	world_set_changed(pub->world, p);
}

static bool has_entry(const struct proc *p)
{
	return !p->kthread && !p->from_proc && p->maps.n_now;
}

static void publish_proc(struct publish *pub, struct proc *p, uint64_t now_ns)
{
	struct slice *slice = has_entry(p) ? slice_of(pub, p) : NULL, *old = p->slice;
	struct tables_process value = {.start_ns = p->start_ns,
				       .exec_id = p->exec_id,
				       .as_of_ns = pub->as_of_ns > p->sure_ns ? pub->as_of_ns :
										p->sure_ns};

	if (slice) {
		value.first = slice->first;
		value.count = slice->count;
		value.flags = flags_of(pub, p);
	}
	if (slice && entries_put(&pub->entries, p->tgid, &value, now_ns)) {
		slices_put(&pub->slices, slice, now_ns);
		slice = NULL;
	}
	if (!slice && !p->kthread)
		entries_remove(&pub->entries, p->tgid, p->start_ns);
	p->slice = slice;
	slices_put(&pub->slices, old, now_ns);
	if (slice)
		wait_after(pub, p, now_ns);
	else if (has_entry(p))
		try_again(pub, p, now_ns);
}

void publish_proc_gone(struct publish *pub, struct proc *p, uint64_t time_ns)
{
	if (pub && !p->kthread)
		entries_leave(&pub->entries, p->tgid, p->start_ns, p->slice, time_ns);
	p->slice = NULL;
}

void publish_cost(const struct publish *pub, struct mp_cost *out)
{
	if (!pub)
		return;
	out->rows_used = pub->rowsets.arena.used;
	out->mappings_used = pub->slices.arena.used;
	out->images_used = pub->slots.arena.used;
	out->rows_evicted = pub->evicted;
	out->tables_refused = pub->refused + pub->entries.refused;
	out->rows_cpu_ns = pub->rows_cpu_ns;
}

/* ---- what no event said ---- */

/* Drop the entry of an unknown process: its exit was lost, or it ended before we began. But keep a
 * process that began after the last read of the side-band. */
static bool is_alive(void *ctx, uint32_t tgid, const struct tables_process *value)
{
	struct publish *pub = ctx;
	const struct proc *p = world_proc(pub->world, tgid);

	if ((p && p->start_ns == value->start_ns) || value->start_ns > pub->as_of_ns)
		return true;
	return entries_is_leaving(&pub->entries, tgid, value->start_ns);
}

static void sweep(struct publish *pub, uint64_t now_ns)
{
	size_t removed;

	if (!pub->heir && now_ns - pub->entries_swept_ns < ENTRIES_SWEEP_NS)
		return;
	pub->entries_swept_ns = now_ns;
	removed = entries_sweep(&pub->entries, is_alive, pub);
	if (removed)
		log_debug("%zu entries of processes that are no more were removed", removed);
}

/* ---- ticks ---- */

void publish_tick(struct publish *pub, uint64_t as_of_ns)
{
	uint64_t now = (uint64_t)clock_boot_ns();
	struct proc *p, *next;

	if (!pub)
		return;
	pub->as_of_ns = as_of_ns;
	publish_images_tick(pub, now);
	DL_FOREACH_SAFE (pub->world->changed, p, next) {
		if (p->due_ns > now && p->due_exec == p->exec_id)
			continue;
		DL_DELETE(pub->world->changed, p);
		p->changed = false;
		publish_proc(pub, p, now);
	}
	sweep(pub, now);
	publish_let_go(pub, now);
	/* only now: entries no longer point to freed room */
	entries_tick(&pub->entries, now);
	arena_tick(&pub->slices.arena, now);
	slots_tick(&pub->slots, now);
	arena_tick(&pub->rowsets.arena, now);
	__atomic_store_n(&pub->maps->state->heartbeat_ns, (uint64_t)clock_boot_ns(),
			 __ATOMIC_RELEASE);
}
