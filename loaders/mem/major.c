/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/major.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/mem/amount.h"
#include "loaders/mem/majorfile.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

#define MAPS_MAX (4u << 20)
#define RANGES   128
#define NOTES    512 /* the last ones: a sample whose stack comes late finds its own */

#define UNKNOWN "[unknown file]"
#define OTHERS  "[other files]"

struct range { /* of a process's addresses */
	uint64_t process, start, end;
	int64_t asked_ns; /* 0: none */
	char name[MAJOR_PATH_LEN + 1];
};

struct major {
	struct range ranges[RANGES];
	struct mem_file notes[NOTES];
	size_t next, n_notes;
	struct idmap paths; /* hash of a path -> 1 */
	size_t n_paths;
};

struct major *major_new(void)
{
	return mem_alloc(sizeof(struct major));
}

void major_free(struct major *x)
{
	if (!x)
		return;
	idmap_release(&x->paths);
	free(x);
}

static uint64_t process_of(const struct stack_event *ev)
{
	return hash_u64(hash_u64(HASH_SEED, (uint64_t)ev->tgid << 32 | ev->exec_id), ev->start_ns);
}

static bool is_running(const struct family_host *h, const struct stack_event *ev)
{
	const struct hostmaps_process *hp = hostmaps_running(h->maps, ev->tgid);

	return hp && hp->start_ns == ev->start_ns && hp->exec_id == ev->exec_id;
}

static void range_ask(struct range *r, const struct family_host *h, const struct stack_event *ev,
		      uint64_t address)
{
	cleanup_free char *maps = NULL;
	size_t len;

	if (!is_running(h, ev) || proc_read(ev->tgid, "maps", MAPS_MAX, &maps, &len) ||
	    !major_named(maps, len, address, &r->start, &r->end, r->name)) {
		r->start = address;
		r->end = address + 1;
		strcpy(r->name, UNKNOWN);
	}
}

static const char *name_at(struct major *x, const struct family_host *h,
			   const struct stack_event *ev, uint64_t address)
{
	const uint64_t process = process_of(ev);
	const int64_t now = clock_boot_ns();
	struct range *r;

	for (size_t i = 0; i < ARRAY_SIZE(x->ranges); i++) {
		r = &x->ranges[i];
		if (r->asked_ns && now - r->asked_ns < MAJOR_KNOWN_NS && r->process == process &&
		    address >= r->start && address < r->end)
			return r->name;
	}
	r = &x->ranges[x->next++ % RANGES];
	r->process = process;
	r->asked_ns = now;
	range_ask(r, h, ev, address);
	return r->name;
}

void major_note(struct major *x, const struct mem_file *f)
{
	x->notes[x->n_notes++ % NOTES] = *f;
}

static const struct mem_file *note_of(const struct major *x, const struct stack_event *ev)
{
	for (size_t i = 0; i < NOTES; i++)
		if (x->notes[i].ev.tid == ev->tid && x->notes[i].ev.time_ns == ev->time_ns)
			return &x->notes[i];
	return NULL;
}

/* What was read, in `name` or elsewhere. */
static const char *read_by(struct major *x, const struct family_host *h,
			   const struct stack_event *ev, char name[MAJOR_PATH_LEN + 1])
{
	const struct mem_file *f = note_of(x, ev);
	const char *mapped;

	if (f && !f->has_file)
		return MAJOR_SWAP;
	mapped = name_at(x, h, ev, MEM_PAGE(ev->tag) << MEM_PAGE_SHIFT);
	if (!f || major_is(f, mapped))
		return mapped;
	major_path(f, name);
	return name[0] ? name : UNKNOWN;
}

/* A recording of a host that reads a million files has not a million names. */
static const char *name_within(struct major *x, const char *name)
{
	uint64_t key = hash_str(HASH_SEED, name), is;

	if (idmap_get(&x->paths, key, &is))
		return name;
	if (x->n_paths >= MAJOR_PATHS)
		return OTHERS;
	x->n_paths++;
	idmap_set(&x->paths, key, 1);
	return name;
}

void major_store(struct major *x, const struct stall_notes *notes, struct family_host *h,
		 const struct stack_event *ev, struct naming_result *named)
{
	char path[MAJOR_PATH_LEN + 1];
	const char *name = name_within(x, read_by(x, h, ev, path));
	const uint64_t n = MEM_PERIOD(ev->tag);
	const struct store_amount a = {.n = n, .value = n};

	amount_store(h, ev, (const uint64_t *)(ev + 1), name, STORE_KIND_MAJORFAULTS, &a,
		     stall_tag_of(notes, ev), n, named);
}
